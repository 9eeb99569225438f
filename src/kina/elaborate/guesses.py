"""What probably was meant where a value has not the type that its place wants.

Guesses are free: each is tried before it is shown, and those that do not mend the program are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kina.diagnostics.diagnostic import Edit, Help
from kina.dims.dim import Dim, constant, floor_div, product
from kina.ops import Entry
from kina.source import Span
from kina.syntax import ast
from kina.types import Shape, Tensor, Type, shape_text

_ONE = constant(1)
_AXIS = re.compile(r"axis=(-?\d+)")
_MOST_AXES = 6


def guess(message: str, *edits: Edit) -> Help:
    return Help(message, edits, guess=True)


def call_of(head: str, span: Span, tail: str = "") -> str:
    """`(head operand tail)` with the source of the operand."""
    return f"({head} {parenthesised(span)}{' ' if tail else ''}{tail})"


def parenthesised(span: Span) -> str:
    """The source of an operand, in parentheses unless it is a single word."""
    text = span.text
    simple = text.replace("_", "").replace("'", "").isalnum() or (text.startswith("(") and text.endswith(")"))
    return text if simple else f"({text})"


def conversions(span: Span, got: Type, wanted: Type) -> tuple[Help, ...]:
    """Small changes of the expression at `span` after which it may have the type `wanted`."""
    if not isinstance(got, Tensor) or not isinstance(wanted, Tensor):
        return ()
    if got.dtype is not wanted.dtype:
        head = f"cast[{wanted.dtype}]"
        return (Help(f"convert it to {wanted.dtype}", (Edit(span, call_of(head, span)),)),)
    return (
        *other_axes(span, got.rank),
        *_kept_or_not(span),
        *_one_more_or_less(span, got.shape, wanted.shape),
        *_permuted(span, got.shape, wanted.shape),
        *_stretched(span, got.shape, wanted.shape),
        *_one_of_each_row(span),
    )


def other_axes(span: Span, rank: int) -> tuple[Help, ...]:
    """The call at `span` along another axis, if an axis stands in its bracket."""
    head = span.text.partition("]")[0]
    found = _AXIS.search(head)
    if found is None or not head.partition("[")[0].isidentifier():
        return ()
    at = Span(span.source, span.start + found.start(1), span.start + found.end(1))
    others = [n for n in range(min(rank + 1, _MOST_AXES)) if n != int(found[1])]
    return tuple(guess(f"along axis {n}", Edit(at, str(n))) for n in others)


def exchanged(first: Span, second: Span, what: str) -> Help:
    """Two arguments in each other's place."""
    return guess(what, Edit(first, parenthesised(second)), Edit(second, parenthesised(first)))


def new_axes(span: Span, rank: int) -> Iterator[Help]:
    """One more axis of size 1, at each place in turn, the first and last ones first."""
    for axis in sorted({0, rank, *range(min(rank, _MOST_AXES))}, key=lambda n: (n != 0, n != rank, n)):
        text = call_of(f"expand_dims[axis={axis}]", span)
        yield guess(f"give {_shown(span)} an axis of size 1 at {axis}", Edit(span, text))


def last_axes_exchanged(span: Span, rank: int) -> tuple[Help, ...]:
    if rank < 2:
        return ()
    order = [*range(rank - 2), rank - 1, rank - 2]
    message = "transpose it" if rank == 2 else "transpose its last two axes"
    return (guess(message, Edit(span, call_of("transpose", span, str(order)))),)


def aligned(small: Shape, large: Sequence[Dim]) -> Shape | None:
    """`small` with axes of size 1 put in so that it stretches to `large`: `[C]` beside `[B, C, H, W]` is `[C, 1, 1]`.
    None where no way or more than one leads there."""
    ways: list[list[int]] = [[]]
    for size in small:
        ways = [[*w, n] for w in ways for n in range(w[-1] + 1 if w else 0, len(large)) if large[n] is size]
        if len(ways) > _MOST_AXES:
            return None
    if len(ways) != 1 or not ways[0]:
        return None
    (way,) = ways
    return tuple(large[n] if n in way else _ONE for n in range(way[0], len(large)))


def _shown(span: Span) -> str:
    return span.text if "\n" not in span.text else "it"


def _kept_or_not(span: Span) -> tuple[Help, ...]:
    for name, other, message in (
        ("reduce_keep[", "reduce[", "drop the reduced axis"),
        ("reduce[", "reduce_keep[", "keep the reduced axis, with size 1"),
    ):
        if span.text.startswith(name):
            return (guess(message, Edit(Span(span.source, span.start, span.start + len(name)), other)),)
    return ()


def _one_more_or_less(span: Span, got: Shape, wanted: Shape) -> Iterator[Help]:
    if len(wanted) == len(got) + 1:
        places = [n for n in range(len(wanted)) if wanted[n] is _ONE or str(wanted[n]).startswith("?")]
        for axis in places:
            text = call_of(f"expand_dims[axis={axis}]", span)
            yield guess(f"give it an axis of size 1 at {axis}", Edit(span, text))
    if len(got) == len(wanted) + 1:
        for axis in (n for n in range(len(got)) if got[n] is _ONE):
            yield guess(f"drop the axis {axis} of size 1", Edit(span, call_of(f"squeeze[axis={axis}]", span)))


def _permuted(span: Span, got: Shape, wanted: Shape) -> Iterator[Help]:
    """The axes in the wanted order. A transpose that is there already gets another order."""
    if len(got) != len(wanted) or sorted(map(str, got)) != sorted(map(str, wanted)) or len(set(got)) != len(got):
        return
    order = [got.index(size) for size in wanted]
    head, bracket, tail = span.text.rpartition("[")
    written = tail.rstrip("]").split(",")
    if head.startswith("transpose ") and bracket and all(item.strip().isdigit() for item in written):
        composed = [int(written[n]) for n in order]
        start = span.start + len(head)
        yield guess(f"the order {composed} gives that", Edit(Span(span.source, start, span.end), str(composed)))
    else:
        yield guess("transpose it", Edit(span, call_of("transpose", span, str(order))))


def _stretched(span: Span, got: Shape, wanted: Shape) -> Iterator[Help]:
    """An operand stretches by itself, a result does not."""
    offset = len(wanted) - len(got)
    if offset > 0 and all(d is w or d is _ONE for d, w in zip(got, wanted[offset:], strict=True)):
        yield guess("stretch it", Edit(span, call_of("broadcast", span, shape_text(wanted))))


def _one_of_each_row(span: Span) -> Iterator[Help]:
    """`gather` takes whole slices; one element of each row is PyTorch's `gather`, which is `take_along` here."""
    written = re.fullmatch(r"gather\[axis=(\d)\] ([\w.']+) ([\w.']+)", span.text)
    if written is not None:
        axis, table, ids = written.groups()
        text = f"(squeeze[axis={axis}] (take_along[axis={axis}] {table} (expand_dims[axis={axis}] {ids})))"
        yield guess(f"for one element of each row along axis {axis}", Edit(span, text))


def missing_axis(
    entry: Entry, name: Span, brackets: Sequence[ast.Expr], arguments: Sequence[ast.Expr]
) -> tuple[Help, ...]:
    """An axis for an operation that was given none; it may stand behind the operands, as in `softmax x 1`."""
    last = arguments[-1] if len(arguments) > len(entry.operand_names) else None
    if isinstance(last, ast.Number) and isinstance(last.value, int):
        behind = Span(last.span.source, arguments[-2].span.end, last.span.end)
        return (guess("the axis stands in the bracket", *_in_bracket(name, brackets, last.value), Edit(behind, "")),)
    most = _MOST_AXES if entry.family == "reduction" else 1
    return tuple(
        guess("along the last axis" if axis == 1 else f"along axis -{axis}", *_in_bracket(name, brackets, -axis))
        for axis in range(1, most + 1)
    )


def _in_bracket(name: Span, brackets: Sequence[ast.Expr], axis: int) -> tuple[Edit, ...]:
    source, end = name.source, brackets[-1].span.end if brackets else name.end
    text = f", axis={axis}" if brackets else f"[axis={axis}]"
    return (Edit(Span(source, end, end), text),)


def quotient(whole: Shape, parts: Shape) -> Dim | None:
    """What is left of a volume once the sizes of `parts` are divided off, where they are sizes of `whole` or divide it
    as polynomials."""
    left = list(whole)
    for size in parts:
        if size in left:
            left.remove(size)
        else:
            value = floor_div(product(left), size)
            if value * size is not product(left):
                return None
            left = [value]
    return product(left)
