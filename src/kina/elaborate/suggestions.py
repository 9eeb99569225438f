"""Help that fits: small changes of a call after which its shapes would agree."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from kina.diagnostics.diagnostic import Edit, Help
from kina.elaborate.context import Context
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


def parenthesised(span: Span) -> str:
    """The source of an operand, in parentheses unless it is a single word."""
    text = span.text
    simple = text.replace("_", "").replace("'", "").isalnum() or (text.startswith("(") and text.endswith(")"))
    return text if simple else f"({text})"


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
    edit = Edit(span, f"(transpose {parenthesised(span)} [{listed}])")
    return Help(f"transpose the last two axes of {span.text}", (edit,))


def _matmul(_span: Span, spans: Spans, operands: Operands) -> tuple[Help, ...]:
    """One of the operands is probably to be transposed."""
    x, y = operands
    if x.rank < 2 or y.rank < 2:
        return ()
    order = [*range(y.rank - 2), y.rank - 1, y.rank - 2]
    if y.shape[-1] is x.shape[-1] and y.shape[-2] is not x.shape[-1]:
        return (_transposed(order, spans[1]),)
    order = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
    if x.shape[-2] is y.shape[-2]:
        return (_transposed(order, spans[0]),)
    return ()


def _concat(span: Span, _spans: Spans, operands: Operands) -> tuple[Help, ...]:
    """Another axis along which the operands do fit."""
    first = operands[0]
    if any(x.rank != first.rank for x in operands):
        return ()
    for axis in range(first.rank):
        others = [a for a in range(first.rank) if a != axis]
        if all(x.shape[a] is first.shape[a] for x in operands for a in others):
            head = span.text.split("]")[0]
            edit = Edit(Span(span.source, span.start, span.start + len(head) + 1), f"concat[axis={axis}]")
            return (Help(f"they fit along axis {axis}", (edit,)),)
    return ()


_ADVICE: Mapping[str, Callable[[Span, Spans, Operands], tuple[Help, ...]]] = {"matmul": _matmul, "concat": _concat}
