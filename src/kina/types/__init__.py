"""What values are: element types, tensors, and what is made of them."""

from kina.types.dtype import DType
from kina.types.types import (
    EFFECTS,
    Argument,
    Arrow,
    Exists,
    List,
    Record,
    Shape,
    Tensor,
    Tuple,
    Type,
    effects_text,
    in_one,
    map_tensors,
    parts,
    shape_text,
    sizes,
    substitute,
    substitute_tensor,
    tensors,
)

__all__ = [
    "EFFECTS", "Argument", "Arrow", "DType", "Exists", "List", "Record", "Shape", "Tensor", "Tuple", "Type",
    "effects_text", "in_one", "map_tensors", "parts", "shape_text", "sizes", "substitute", "substitute_tensor",
    "tensors",
]  # fmt: skip
