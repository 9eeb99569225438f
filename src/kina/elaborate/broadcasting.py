"""One-sided broadcasting: the smaller operand of an elementwise operation stretches to the other's shape."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from kina.core.ir import Value
from kina.diagnostics import form_errors, shape_errors
from kina.diagnostics.diagnostic import Diagnostic, Edit, Help
from kina.diagnostics.shapes import Row
from kina.dims.dim import Dim, constant
from kina.dims.proposition import equal
from kina.dims.prover import Verdict, settle
from kina.elaborate.context import Context
from kina.elaborate.guesses import aligned, call_of, guess, parenthesised
from kina.elaborate.obligations import sizes_that_differ, where_declared
from kina.ops.shape import Broadcast
from kina.source import Span
from kina.types import Shape, shape_text

_ONE = constant(1)


def stretch(
    context: Context, shown: str, span: Span, operands: Sequence[Value], spans: Sequence[Span]
) -> tuple[Value, ...]:
    """The operands in one shape: that of one of them, to which all others stretch.

    An operand stretches if, laid against the right end, each of its axes agrees or is literally 1.
    """
    shapes = [x.type.shape for x in operands]
    if all(shape == shapes[0] for shape in shapes):
        return tuple(operands)
    largest = max(range(len(operands)), key=lambda n: (len(shapes[n]), sum(d is not _ONE for d in shapes[n])))
    target = shapes[largest]
    return tuple(
        _stretched(context, shown, span, x, place, target, (operands[largest], spans[largest]))
        for x, place in zip(operands, spans, strict=True)
    )


def _stretched(
    context: Context, shown: str, span: Span, x: Value, place: Span, target: Shape, larger: tuple[Value, Span]
) -> Value:
    shape = x.type.shape
    offset = len(target) - len(shape)
    stretches = offset > 0
    for axis, size in enumerate(shape):
        wanted = target[offset + axis]
        if size is wanted:
            continue
        if size is _ONE:
            stretches = True
            continue
        verdict = context.settle(equal(size, wanted), span, f"{shown} needs one shape")
        if not verdict.status.proved:
            raise context.report(_does_not_fit(context, shown, span, (x, place), larger, axis, verdict))
    if not stretches:
        return x
    if context.home.strict:
        raise context.report(
            form_errors.sugar(place, "stretching an operand", _broadcast_text(place, target))
        )
    return context.apply(Broadcast(target), (x,), x.type.with_shape(target), place)


def stretch_batch(context: Context, operands: tuple[Value, ...], spans: Sequence[Span]) -> tuple[Value, ...]:
    """The operands of `matmul` with the same batch axes: one stretches to the other's where its own ones fit."""
    batches = [x.type.shape[:-2] for x in operands]
    if batches[0] == batches[1] or min(x.type.rank for x in operands) < 2:
        return operands
    small, large = sorted((0, 1), key=lambda n: (len(batches[n]), sum(d is not _ONE for d in batches[n])))
    batch, own = batches[large], batches[small]
    unlike = [(a, b) for a, b in zip(own, batch[len(batch) - len(own) :], strict=True) if a is not b]
    if len(own) == len(batch) and not any(size is _ONE for size, _ in unlike):
        return operands
    if not all(size is _ONE or settle(equal(size, wanted), context.facts).status.proved for size, wanted in unlike):
        return operands
    x, place = operands[small], spans[small]
    target = (*batch, *x.type.shape[-2:])
    if context.home.strict:
        raise context.report(form_errors.sugar(place, "stretching an operand", _broadcast_text(place, target)))
    stretched = context.apply(Broadcast(target), (x,), x.type.with_shape(target), place)
    return (stretched, operands[1]) if small == 0 else (operands[0], stretched)


def _broadcast_text(place: Span, target: Shape) -> str:
    return f"broadcast {parenthesised(place)} {shape_text(target)}"


def _does_not_fit(
    context: Context, shown: str, span: Span, smaller: tuple[Value, Span], larger: tuple[Value, Span], axis: int,
    verdict: Verdict,
) -> Diagnostic:  # fmt: skip
    """The error, with both operands in the order of the source."""
    (x, x_span), (y, y_span) = smaller, larger
    offset = y.type.rank - x.type.rank
    rows = [
        (x_span, Row(x_span.text.split("\n")[0], x.type.shape, frozenset({axis}))),
        (y_span, Row(y_span.text.split("\n")[0], y.type.shape, frozenset({offset + axis}))),
    ]
    rows.sort(key=lambda pair: pair[0].start)
    return shape_errors.operands_do_not_broadcast(
        span,
        shown=shown,
        rows=[row for _, row in rows],
        places=((x_span, x.type), (y_span, y.type)),
        counterexample=sizes_that_differ(verdict, x.type.shape[axis], y.type.shape[offset + axis]),
        facts=context.facts.hypotheses,
        help=_advice(context, x_span, x.type.shape, y_span, y.type.shape),
        binders=where_declared(context, x.type.shape[axis], y.type.shape[offset + axis]),
    )


def _advice(context: Context, x_span: Span, x: Shape, y_span: Span, y: Shape) -> tuple[Help, ...]:
    """A reduced axis that should have been kept, a 1 that should go, an axis that should be added."""
    if any(context.segments.values()) and (laid := _laid_from(context, x_span, x, y)):
        return (laid,)
    kept = _keep_reduced(x_span, x, y)
    if kept:
        return (kept,)
    for axis, size in enumerate(y):
        if size is _ONE and (*y[:axis], *y[axis + 1 :]) == x:
            edit = Edit(y_span, f"(squeeze[axis={axis}] {parenthesised(y_span)})")
            more = Edit(x_span, call_of(f"expand_dims[axis={axis}]", x_span))
            return (
                Help(f"drop the axis of size 1 of {y_span.text}", (edit,)),
                guess(f"give {x_span.text} an axis of size 1 at {axis}", more),
            )
    for axis in range(len(y)):
        inserted = (*x[:axis], _ONE, *x[axis:])
        if len(inserted) == len(y) and _fits(inserted, y):
            edit = Edit(x_span, f"(expand_dims[axis={axis}] {parenthesised(x_span)})")
            return (Help(f"give {x_span.text} an axis of size 1 at {axis}", (edit,)),)
    shape = aligned(x, y)
    if shape is not None:
        text = shape_text(shape)
        return (guess(f"as {text} it stretches", Edit(x_span, call_of("reshape", x_span, text))),)
    return _all_pairs(x_span, x, y_span, y)


def _laid_from(context: Context, span: Span, x: Shape, y: Shape) -> Help | None:
    """Where axes of a segment `...S` follow, what stands before them is laid on by its place."""
    places = [n for n in range(len(y) - len(x) + 1) if y[n : n + len(x)] == x]
    if len(places) != 1:
        return None
    text = call_of(f"broadcast[axis={places[0]}]", span, _as_written(context, y))
    return guess(f"lay {span.text} on from axis {places[0]}", Edit(span, text))


def _as_written(context: Context, shape: Shape) -> str:
    """A shape with the axes of a segment as `...S`."""
    texts = list(map(str, shape))
    for name, axes in context.segments.items():
        for n in range(len(shape) - len(axes), -1, -1):
            if axes and shape[n : n + len(axes)] == axes:
                texts[n : n + len(axes)] = [f"...{name}"]
                break
    return f"[{', '.join(texts)}]"


def _all_pairs(x_span: Span, x: Shape, y_span: Span, y: Shape) -> tuple[Help, ...]:
    """Where both operands would have to stretch, one has to say so: in Kina nothing becomes `[N, M]` unasked."""
    (left, l_span), (right, r_span) = sorted([(x, x_span), (y, y_span)], key=lambda pair: pair[1].start)
    if len(left) == len(right) == 1:
        pairs = (*left, *right)
        text = f"(broadcast {call_of('expand_dims[axis=1]', l_span)} {shape_text(pairs)})"
        return (guess(f"for every pair, as {shape_text(pairs)}", Edit(l_span, text)),)
    whole = tuple(b if a is _ONE else a for a, b in zip_longest(reversed(left), reversed(right), fillvalue=_ONE))[::-1]
    larger = l_span if len(left) > len(right) else r_span
    text = call_of("broadcast", larger, shape_text(whole))
    return (guess(f"for every pair, as {shape_text(whole)}", Edit(larger, text)),)


def _keep_reduced(x_span: Span, x: Shape, y: Shape) -> Help | None:
    text = x_span.text.lstrip("(")
    if text.startswith("reduce[") and len(x) < len(y):
        start = x_span.start + len(x_span.text) - len(text)
        edit = Edit(Span(x_span.source, start, start + len("reduce")), "reduce_keep")
        return Help("keep the reduced axis, with size 1", (edit,))
    return None


def _fits(x: Shape, y: Sequence[Dim]) -> bool:
    return all(a is b or a is _ONE for a, b in zip(x, y, strict=True))
