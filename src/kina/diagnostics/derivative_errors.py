"""Errors of `grad`, `value_and_grad`, `vjp` and `jvp`."""

from __future__ import annotations

from kina.diagnostics.diagnostic import Diagnostic, Help, Severity
from kina.source import Span
from kina.types import DType, Tensor, Type


def _error(message: str, span: Span, label: str, help_: tuple[Help, ...]) -> Diagnostic:
    return Diagnostic("K0240", Severity.ERROR, message, span, label, help=help_)


def no_scalar(span: Span, what: str, type_: Type) -> Diagnostic:
    """The function of a gradient gives something else than one float."""
    help_: tuple[Help, ...] = ()
    if isinstance(type_, Tensor) and type_.dtype.is_float:
        reduced = Help("reduce its result to one number: `reduce[sum, axes=all]`")
        help_ = (reduced, Help("`vjp f x ct` takes a cotangent of any result"))
    return _error(f"`{what}` wants a function that gives one float, and this gives {type_}", span, "no scalar", help_)


def nothing_moves(span: Span, what: str, type_: Type) -> Diagnostic:
    """There is no float in what is differentiated by."""
    counts = isinstance(type_, Tensor) and type_.bound is None and type_.dtype is not DType.BOOL
    help_ = (Help("convert it first: `cast[F32]`"),) if counts else ()
    return _error(f"`{what}` differentiates by floats, and there are none in {type_}", span, "has no tangent", help_)


def part_without_tangent(span: Span, part: Tensor, type_: Type) -> Diagnostic:
    """A part that has no tangent, and no zero that could stand for one."""
    kind = "positions" if part.bound is not None else "quantised"
    help_ = (Help("keep that part out of what is differentiated: make it an argument of its own"),)
    return _error(f"{type_} has a part {part}, {kind}, which has no tangent", span, "cannot change by little", help_)
