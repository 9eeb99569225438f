"""Surface expressions read as types."""

from __future__ import annotations

from kina.diagnostics import form_errors as errors
from kina.elaborate.context import Context
from kina.elaborate.dimensions import read_shape
from kina.elaborate.spellings import dtype_spelling
from kina.syntax import ast
from kina.types import DType, Tensor, Tuple, Type

_DTYPES = {d.value: d for d in DType}
_QUANTISED = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "Q8_K")


def read_type(context: Context, e: ast.Expr) -> Type:
    """A tensor or tuple type. Sizes in it are obliged to be defined and not negative."""
    match e:
        case ast.Bracket(target=ast.Name(text="Tensor"), items=(dtype, ast.ListLiteral(items=shape))):
            return Tensor(read_dtype(context, dtype), read_shape(context, shape))
        case ast.Bracket(target=ast.Name(text="Tensor")) | ast.Name(text="Tensor"):
            raise context.report(
                errors.malformed_type(e.span, "a tensor type is written Tensor[F32, [B, S]], or F32[B, S]")
            )
        case ast.Bracket(target=ast.Name(text=name) as target, items=shape) if name in _DTYPES:
            if context.module.strict:
                raise context.report(errors.sugar(e.span, f"`{name}[...]`", f"Tensor[{name}, [...]]"))
            return Tensor(read_dtype(context, target), read_shape(context, shape))
        case ast.Name(text=name) if name in _DTYPES:
            if context.module.strict:
                raise context.report(errors.sugar(e.span, f"`{name}` for a scalar", f"Tensor[{name}, []]"))
            return Tensor(_DTYPES[name], ())
        case ast.TupleLiteral(items=items):
            return Tuple(tuple(read_type(context, item) for item in items))
        case ast.Arrow():
            raise context.report(errors.unsupported(e.span, "function types"))
        case ast.Exists():
            raise context.report(errors.unsupported(e.span, "existential types"))
        case ast.Hole(name=""):
            raise context.unreadable()
        case ast.Bracket(target=ast.Name(text="Idx")):
            raise context.report(errors.unsupported(e.span, "the index dtype `Idx[V]`"))
        case ast.Bracket(target=ast.Name(text="List")) | ast.Name(text="List"):
            raise context.report(errors.unsupported(e.span, "`List` types"))
        case ast.Bracket(target=ast.Name()) | ast.Name():
            read_dtype(context, e.target if isinstance(e, ast.Bracket) else e)
            raise context.report(errors.malformed_type(e.span, "this is not a type"))
        case _:
            raise context.report(
                errors.malformed_type(e.span, "a type is a tensor such as F32[B, S], or a tuple of types")
            )


def read_dtype(context: Context, e: ast.Expr) -> DType:
    match e:
        case ast.Name(text=name) if name in _DTYPES:
            return _DTYPES[name]
        case ast.Bracket(target=ast.Name(text="Idx")):
            raise context.report(errors.unsupported(e.span, "the index dtype `Idx[V]`"))
        case ast.Name(text=name) if name in _QUANTISED:
            raise context.report(errors.unsupported(e.span, f"the quantised dtype `{name}`"))
        case ast.Name(text=name):
            kinds = {b.name: b.kind for b in context.declaration.binders}
            if kinds.get(name):
                raise context.report(errors.unsupported(e.span, "dtype variables"))
            spelling = dtype_spelling(name)
            known = (*_DTYPES, "Tensor")
            raise context.report(errors.unknown_type(e.span, name, known, spelling and spelling.value))
        case _:
            raise context.report(errors.malformed_type(e.span, f"an element type is one of {' '.join(_DTYPES)}"))
