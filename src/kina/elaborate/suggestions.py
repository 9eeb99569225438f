"""Help that fits: small changes of a call after which its shapes would agree."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from kina.diagnostics.diagnostic import Edit, Help
from kina.elaborate.context import Context
from kina.elaborate.guesses import call_of, exchanged, guess, new_axes, other_axes, parenthesised
from kina.ops.base import Entry
from kina.source import Span
from kina.syntax import ast
from kina.types import DType, Tensor

Operands = tuple[Tensor, ...]
Spans = tuple[Span, ...]


def suggest(context: Context, entry: Entry, span: Span, spans: Spans, operands: Operands) -> tuple[Help, ...]:
    """Changes of this call that make its shapes agree, the likeliest first; none if none is known."""
    advise = _ADVICE.get(entry.name)
    return advise(span, spans, operands) if advise else ()


def call_advice(e: ast.Expr, name: Span, arguments: tuple[ast.Expr, ...], missing: bool) -> tuple[Help, ...]:
    """What probably happened where a call has the wrong number of arguments: habits of other languages."""
    source = e.span.source
    if len(arguments) == 1 and isinstance(arguments[0], ast.TupleLiteral) and missing:
        tuple_ = arguments[0]
        words = " ".join(parenthesised(item.span) for item in tuple_.items)
        head = Span(source, e.span.start, tuple_.span.start).text.rstrip()
        return (Help("arguments stand after the name, with spaces between", (Edit(e.span, f"{head} {words}"),)),)
    negative = re.match(r"\s+(-[\w.]+)", source.text[e.span.end :]) if missing else None
    if negative:
        at = Span(source, e.span.end + negative.start(1), e.span.end + negative.end(1))
        return (Help("a negative argument needs parentheses", (Edit(at, f"({negative[1]})"),)),)
    first = arguments[0] if arguments else None
    if isinstance(first, ast.ListLiteral) and not missing and name.end < first.span.start:
        gap = Span(source, name.end, first.span.start)
        return (Help("a bracket that touches the name gives dimensions or attributes", (Edit(gap, ""),)),)
    if not missing and len(arguments) > 1:
        extra = Span(source, arguments[-2].span.end, arguments[-1].span.end)
        return (guess(f"leave out {arguments[-1].span.text}", Edit(extra, "")),)
    return ()


def cast_help(operand: Span, to: DType) -> Help:
    shown = operand.text if "\n" not in operand.text else "it"
    return Help(f"convert {shown} to {to}", (Edit(operand, f"(cast[{to}] {parenthesised(operand)})"),))


def convert(places: tuple[Span, Span], dtypes: tuple[DType, DType]) -> tuple[Help, ...]:
    """Either operand in the other's dtype, an integer first: a float that becomes an integer loses its fraction."""
    order = sorted((0, 1), key=lambda n: dtypes[n].is_float)
    return tuple(cast_help(places[n], dtypes[1 - n]) for n in order)


def _transposed(order: list[int], span: Span) -> Help:
    listed = ", ".join(map(str, order))
    already = re.fullmatch(rf"transpose (\w+) \[{re.escape(listed)}\]", span.text)
    if already:
        return Help(f"{already[1]} fits as it is", (Edit(span, already[1]),))
    edit = Edit(span, f"(transpose {parenthesised(span)} [{listed}])")
    return Help(f"transpose the last two axes of {span.text}", (edit,))


def _as_matrix(span: Span, spans: Spans, operands: Operands) -> Iterator[Help]:
    """A vector as a matrix of one column on the right, of one row on the left; its axis may have to go afterwards."""
    for n, (axis, what) in enumerate(((0, "row"), (-1, "column"))):
        if operands[n].rank == 1:
            place, other = spans[n], spans[1 - n]
            text = call_of(f"expand_dims[axis={axis}]", place)
            yield guess(f"make {place.text} a {what}", Edit(place, text))
            pair = (text, parenthesised(other)) if n == 0 else (parenthesised(other), text)
            result = f"(squeeze[axis={-2 if n == 0 else -1}] (matmul {' '.join(pair)}))"
            yield guess(f"make {place.text} a {what}, and drop that axis of the result", Edit(span, result))


def _matmul(_span: Span, spans: Spans, operands: Operands) -> tuple[Help, ...]:
    """One of the operands is probably to be transposed."""
    x, y = operands
    if x.rank < 2 or y.rank < 2:
        return (*_as_matrix(_span, spans, operands),)
    order = [*range(y.rank - 2), y.rank - 1, y.rank - 2]
    if y.shape[-1] is x.shape[-1] and y.shape[-2] is not x.shape[-1]:
        return (_transposed(order, spans[1]),)
    order = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
    if x.shape[-2] is y.shape[-2]:
        return (_transposed(order, spans[0]),)
    if y.shape[-1] is x.shape[-2]:
        return (exchanged(spans[0], spans[1], "the other way round they fit"),)
    return ()


def _broadcast(_span: Span, spans: Spans, operands: Operands) -> tuple[Help, ...]:
    """Sizes are laid against the right end: an axis of size 1 puts an operand further left."""
    return tuple(new_axes(spans[0], operands[0].rank))


def _squeeze(span: Span, _spans: Spans, operands: Operands) -> tuple[Help, ...]:
    return other_axes(span, operands[0].rank - 1)


def _concat(span: Span, spans: Spans, operands: Operands) -> tuple[Help, ...]:
    """Another axis along which the operands do fit, or an axis that one of them lacks."""
    first = operands[0]
    if any(x.rank != first.rank for x in operands):
        most = max(x.rank for x in operands)
        lacking = [n for n, x in enumerate(operands) if x.rank == most - 1]
        return tuple(help_ for n in lacking for help_ in new_axes(spans[n], most - 1))
    for axis in range(first.rank):
        others = [a for a in range(first.rank) if a != axis]
        if all(x.shape[a] is first.shape[a] for x in operands for a in others):
            head = span.text.split("]")[0]
            edit = Edit(Span(span.source, span.start, span.start + len(head) + 1), f"concat[axis={axis}]")
            return (Help(f"they fit along axis {axis}", (edit,)),)
    return ()


_ADVICE: Mapping[str, Callable[[Span, Spans, Operands], tuple[Help, ...]]] = {
    "matmul": _matmul, "concat": _concat, "broadcast": _broadcast, "squeeze": _squeeze,
}  # fmt: skip
