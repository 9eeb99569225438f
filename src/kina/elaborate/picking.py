"""`sort`, `top_k`, `nonzero`, `compress`: made of operations that give positions, and of reading there."""

from __future__ import annotations

from typing import Any

from kina.core.ir import Open, Tree, Value, tree_type
from kina.diagnostics import form_errors
from kina.dims.dim import Dim, product
from kina.dims.proposition import at_most
from kina.elaborate.context import Context, Meaning, Package
from kina.elaborate.dispatch import builtin, infer
from kina.elaborate.literals import dtype_of
from kina.elaborate.operations import Written, operate, read_call
from kina.elaborate.rule import CallRule
from kina.ops.base import DTypeClass, Entry, Kind, Operation, Parameter
from kina.source import Span
from kina.syntax import ast
from kina.types import DType, Exists, Type

_AXIS = Parameter("axis", Kind.AXIS, True)


def _form(name: str, torch: str, operands: tuple[str, ...], *parameters: Parameter, keeps_dtype: bool) -> Entry:
    """How a form is written, declared as operations are."""

    def build(**static: Any) -> Operation:
        raise TypeError(f"{name} is no operation of core")

    return Entry(name, "indexing", torch, "", operands, False, parameters, build, list, keeps_dtype)


_SORT = _form("sort", "x.sort(dim=axis, stable=True).values", ("x",), _AXIS, keeps_dtype=True)
_TOP_K = _form("top_k", "x.topk(k, dim=axis)", ("x",), _AXIS, Parameter("k", Kind.SIZE, False), keeps_dtype=False)
_NONZERO = _form("nonzero", "mask.nonzero(as_tuple=True)", ("mask",), keeps_dtype=False)
_COMPRESS = _form("compress", "x[mask]", ("x", "mask"), _AXIS, keeps_dtype=False)
FORMS = {form.name: form for form in (_SORT, _TOP_K, _NONZERO, _COMPRESS)}
"""How each is written."""


def _written(
    context: Context, e: ast.Expr, entry: Entry, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
    expected: Type | None, instead: str,
) -> Written:  # fmt: skip
    if context.home.strict:
        raise context.report(form_errors.sugar(e.span, f"`{entry.name}`", instead))
    target = ast.Name(entry.name, span=Span(e.span.source, e.span.start, e.span.start + len(entry.name)))
    hint = dtype_of(expected) if entry.keeps_dtype else None
    return read_call(context, e, target, entry, brackets, arguments, infer, hint)


def _taken(
    context: Context, e: ast.Expr, form: Entry, w: Written, order: str, static: dict[str, Any], name: str | None
) -> tuple[Value, Value]:
    """The elements of a row in an order, and their positions."""
    (x,), at = w.operands, {"axis": w.static["axis"]}
    ids = operate(context, order, {**at, **static}, form.name, e.span, (x,), w.spans, None)
    taken = operate(context, "take_along", at, form.name, e.span, (x, ids), (*w.spans, e.span), name)
    return taken, ids


@builtin("sort")
def _sort(
    context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
    expected: Type | None, name: str | None,
) -> Meaning:  # fmt: skip
    """`sort[axis=1] x`: the elements in ascending order, equal ones as they stood, NaN last. `flip` of it descends."""
    written = _written(context, e, _SORT, brackets, arguments, expected, "argsort, then take_along")
    return _taken(context, e, _SORT, written, "argsort", {}, name)[0]


@builtin("top_k")
def _top_k(
    context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
    expected: Type | None, name: str | None,
) -> Meaning:  # fmt: skip
    """`top_k[axis=1] x k`: the k greatest elements, the greatest first, and their positions (`Idx[N]`)."""
    written = _written(context, e, _TOP_K, brackets, arguments, None, "arg_top_k, then take_along")
    return _taken(context, e, _TOP_K, written, "arg_top_k", {"k": written.static["k"]}, name)


@builtin("nonzero")
def _nonzero(
    context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
    expected: Type | None, name: str | None,
) -> Meaning:  # fmt: skip
    """`nonzero mask`: where a mask is true, in row-major order: `exists [K] requires (K <= N). Idx[N][K]`.

    Of a mask with several axes it is a tuple, one tensor for each axis.
    """
    written = _written(context, e, _NONZERO, brackets, arguments, None, "nonzero_along")
    (mask,) = written.operands
    size = _count(context, e, _NONZERO, written)
    places = tuple(_along(context, e, _NONZERO, mask, axis, size, written.spans) for axis in range(mask.type.rank))
    return _package(size, mask, places[0] if len(places) == 1 else places)


@builtin("compress")
def _compress(
    context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
    expected: Type | None, name: str | None,
) -> Meaning:  # fmt: skip
    """`compress[axis=0] x mask`: the slices of x along an axis where a mask of that axis is true.

    `[N, D], [N] -> exists [K] requires (K <= N). [K, D]`.
    """
    written = _written(context, e, _COMPRESS, brackets, arguments, None, "nonzero_along, then gather")
    x, mask = written.operands
    axis = written.static["axis"]
    rule = _rule(context, e, _COMPRESS, written)
    if mask.type.rank != 1:
        rule.refuse(f"the mask of compress is for one axis, and this is {mask.type}", operand=1)
    rule.dtype(1, DTypeClass.BOOL)
    rule.same_size((0, axis), (1, 0), "N")
    size = _count(context, e, _COMPRESS, written)
    ids = _along(context, e, _COMPRESS, mask, 0, size, written.spans[1:])
    spans = (written.spans[0], e.span)
    kept = operate(context, "gather", {"axis": axis}, _COMPRESS.name, e.span, (x, ids), spans, name)
    return _package(size, mask, kept)


def _rule(context: Context, e: ast.Expr, form: Entry, written: Written) -> CallRule:
    types = tuple(x.type for x in written.operands)
    return CallRule(context, form, form.name, e.span, types, written.spans)


def _count(context: Context, e: ast.Expr, form: Entry, written: Written) -> Dim:
    """How many elements of the mask, the last operand, are true: a new dimension that is at most their number."""
    rule = _rule(context, e, form, written)
    last = len(written.operands) - 1
    rule.dtype(last, DTypeClass.BOOL)
    rule.rank(last, 1)
    mask, at = written.operands[last], written.spans[last:]
    ones = operate(context, "cast", {"to": DType.I64}, form.name, e.span, (mask,), at, None)
    whole = {"kind": "sum", "axes": tuple(range(mask.type.rank))}
    count = operate(context, "reduce", whole, form.name, e.span, (ones,), at, None)
    (size,) = context.measured_dimensions(("K",))
    context.statements.append(Open(str(size), count, (), e.span))
    most = at_most(size, product(list(mask.type.shape)))
    context.check_at_run_time(most, e.span)  # always holds; said so that core knows it
    context.assume(most)
    return size


def _along(
    context: Context, e: ast.Expr, form: Entry, mask: Value, axis: int, size: Dim, spans: tuple[Span, ...]
) -> Value:
    static = {"axis": axis, "count": size}
    return operate(context, "nonzero_along", static, form.name, e.span, (mask,), spans, None)


def _package(size: Dim, mask: Value, tree: Tree) -> Package:
    known = (at_most(size, product(list(mask.type.shape))),)
    return Package(Exists((str(size),), known, tree_type(tree)), (size,), tree)
