"""What values are: element types, tensors, tuples."""

from kina.types.dtype import DType
from kina.types.types import Shape, Tensor, Tuple, Type, shape_text, substitute, substitute_tensor, tensors

__all__ = ["DType", "Shape", "Tensor", "Tuple", "Type", "shape_text", "substitute", "substitute_tensor", "tensors"]
