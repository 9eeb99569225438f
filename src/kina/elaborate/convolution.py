"""`conv`, `max_pool` and `avg_pool`: sugar for padding, `windows`, and a matrix product or a reduction of each window.

Arrays are `[N, C, L]` or `[N, C, H, W]`, kernels `[O, C / groups, K...]`. A window has to fit: that is an obligation,
and the size of the result, `(L + 2 * pad - dilation * (K - 1) - 1) div stride + 1`, stands in its type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kina.core.ir import Value
from kina.diagnostics import form_errors
from kina.diagnostics.diagnostic import Edit, Help
from kina.dims.dim import Dim, constant
from kina.dims.proposition import equal
from kina.elaborate.context import Context, Meaning
from kina.elaborate.dimensions import read_size
from kina.elaborate.dispatch import builtin, infer
from kina.elaborate.literals import dtype_of
from kina.elaborate.obligations import oblige
from kina.elaborate.operations import form, name_in, operate, read_call
from kina.elaborate.patterns import Steps, exact_quotient, named
from kina.elaborate.rule import CallRule
from kina.ops import Entry
from kina.ops.base import DTypeClass
from kina.source import Span
from kina.syntax import ast
from kina.types import Type

_ZERO, _ONE = constant(0), constant(1)
_CONV = form("conv", ("x", "kernel"), ())
_POOLS = {name: form(name, ("x",), ()) for name in ("max_pool", "avg_pool")}
_USAGE = {
    "conv": "conv[stride=1, pad=0, dilation=1, groups=1] x kernel",
    "max_pool": "max_pool[size=2, stride=2, pad=0, dilation=1] x",
    "avg_pool": "avg_pool[size=2, stride=2, pad=0] x",
}


@builtin("conv")
def _conv(
    context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
    expected: Type | None, name: str | None,
) -> Meaning:  # fmt: skip
    """A sum over channels and a window of each position: `[N, C, L], [O, C / groups, K] -> [N, O, W]`."""
    operands, spans, _ = read_call(context, e, name_in(e, "conv"), _CONV, (), arguments, infer, dtype_of(expected))
    call = _Call(Steps(context, "conv", e.span), _CONV, spans)
    x, kernel = operands
    call.one_kind(operands)
    if kernel.type.rank != x.type.rank:
        message = f"`conv`: x has {x.type.rank} axes and the kernel {kernel.type.rank}; they have to have as many"
        raise context.report(form_errors.refused(spans[1], message, "a kernel is [O, C / groups, K] or [O, C, K, K]"))
    given = call.attributes(brackets, x.type.rank - 2, ("stride", "pad", "dilation"), ("groups",))
    window = kernel.type.shape[2:]
    (groups,) = given.get("groups", (_ONE,))
    x = call.windows(call.padded(x, given["pad"]), window, given["stride"], given["dilation"])
    return named(context, call.contracted(x, kernel, groups), name)


def _pool(
    context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...], shown: str,
    name: str | None,
) -> Meaning:  # fmt: skip
    (x,), spans, _ = read_call(context, e, name_in(e, shown), _POOLS[shown], (), arguments, infer, None)
    call = _Call(Steps(context, shown, e.span), _POOLS[shown], spans)
    call.one_kind((x,), DTypeClass.NUM if shown == "max_pool" else DTypeClass.FLOAT)
    axes = x.type.rank - 2
    others = ("dilation",) if shown == "max_pool" else ()
    given = call.attributes(brackets, axes, ("size", "stride", "pad", *others), ())
    if "size" not in given:
        message = f"`{shown}` needs `size` in its bracket"
        raise context.report(form_errors.bad_attribute(e.span, message, _USAGE[shown]))
    size = given["size"]
    around = call.least(x) if shown == "max_pool" and any(p is not _ZERO for p in given["pad"]) else None
    dilation = given.get("dilation", (_ONE,) * axes)
    x = call.windows(call.padded(x, given["pad"], around), size, given.get("stride", size), dilation)
    kind = "max" if shown == "max_pool" else "mean"
    inside = tuple(3 + 2 * n for n in range(axes))
    return named(context, call.steps.apply("reduce", x, spans[0], kind=kind, axes=inside), name)


@builtin("max_pool")
def _max_pool(
    context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
    expected: Type | None, name: str | None,
) -> Meaning:  # fmt: skip
    """The greatest of each window. What is padded is less than everything, so that it never wins."""
    return _pool(context, e, brackets, arguments, "max_pool", name)


@builtin("avg_pool")
def _avg_pool(
    context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
    expected: Type | None, name: str | None,
) -> Meaning:  # fmt: skip
    """The mean of each window. Padded zeros count as elements (PyTorch's `count_include_pad=True`)."""
    return _pool(context, e, brackets, arguments, "avg_pool", name)


def _depthwise(span: Span, channels: Dim) -> tuple[Help, ...]:
    """A kernel that reads one channel wants as many groups as there are channels."""
    if not span.text.startswith("conv"):
        return ()
    bracket = span.text.startswith("conv[")
    at = span.start + len("conv[" if bracket else "conv")
    text = f"groups={channels}, " if bracket else f"[groups={channels}]"
    return (Help("a kernel for each channel alone needs groups", (Edit(Span(span.source, at, at), text),)),)


@dataclass(frozen=True, slots=True)
class _Call:
    steps: Steps
    entry: Entry
    spans: tuple[Span, ...]

    # ------------------------------------------------------------ what is given

    def one_kind(self, operands: tuple[Value, ...], wanted: DTypeClass = DTypeClass.NUM) -> None:
        """Numbers of one dtype, with one or two axes after `[N, C]`."""
        steps = self.steps
        if steps.context.home.strict:
            instead = "pad, windows, and matmul or reduce"
            raise steps.context.report(form_errors.sugar(steps.span, f"`{steps.shown}`", instead))
        types = tuple(x.type for x in operands)
        rule = CallRule(steps.context, self.entry, steps.shown, steps.span, types, self.spans)
        for n in range(len(operands)):
            rule.dtype(n, wanted)
            rule.same_dtype(0, n)
        if types[0].rank not in (3, 4):
            message = f"`{steps.shown}`: an array is [N, C, L] or [N, C, H, W], and this has {types[0].rank} axes"
            raise steps.context.report(form_errors.refused(self.spans[0], message, None))

    def attributes(
        self, brackets: tuple[ast.Expr, ...], axes: int, many: Sequence[str], single: Sequence[str]
    ) -> dict[str, tuple[Dim, ...]]:
        """What the bracket gives: one size for all axes, or one for each. `size` and pools' `stride` may be missing."""
        context, shown = self.steps.context, self.steps.shown
        usage = _USAGE[shown]
        given: dict[str, tuple[Dim, ...]] = {}
        for item in brackets:
            known = [*many, *single]
            if not isinstance(item, ast.NamedItem) or item.name not in known:
                close = form_errors.nearest(item.name, known) if isinstance(item, ast.NamedItem) else None
                help_ = (Help(f"did you mean `{close}`?"),) if close else ()
                message = f"`{shown}` takes {', '.join(known)} by name in its bracket"
                raise context.report(form_errors.bad_attribute(item.span, message, usage, help_))
            if item.name in given:
                raise context.report(form_errors.bad_attribute(item.span, f"`{shown}` is given this twice", usage))
            several = isinstance(item.value, ast.ListLiteral) and item.name in many
            values = item.value.items if isinstance(item.value, ast.ListLiteral) and several else (item.value,)
            if several and len(values) != axes:
                message = f"`{shown}` works along {axes} {'axis' if axes == 1 else 'axes'}, and {len(values)} are given"
                raise context.report(form_errors.bad_attribute(item.span, message, usage))
            sizes = tuple(read_size(context, value) for value in values)
            given[item.name] = sizes if several or item.name in single else sizes * axes
        given.setdefault("pad", (_ZERO,) * axes)
        if "size" not in many:
            given.setdefault("stride", (_ONE,) * axes)
        if "dilation" in many:
            given.setdefault("dilation", (_ONE,) * axes)
        return given

    # ------------------------------------------------------------ what becomes of it

    def least(self, x: Value) -> Value:
        """The least value of a dtype, as a scalar: the maximum of nothing."""
        dtype, context = x.type.dtype, self.steps.context
        static = {"dtype": dtype, "shape": (_ZERO,)}
        none = operate(context, "zeros", static, self.steps.shown, self.steps.span, (), (), None)
        return self.steps.apply("reduce", none, self.steps.span, kind="max", axes=(0,))

    def padded(self, x: Value, pad: Sequence[Dim], around: Value | None = None) -> Value:
        """As much on either side of each axis, of zeros or of the scalar `around`."""
        context, shown, span = self.steps.context, self.steps.shown, self.steps.span
        for axis, size in enumerate(pad, 2):
            if size is _ZERO:
                continue
            if around is None:
                x = self.steps.apply("pad", x, self.spans[0], axis=axis, lo=size, hi=size)
                continue
            shape = (*x.type.shape[:axis], size, *x.type.shape[axis + 1 :])
            side = self.steps.apply("full", around, self.spans[0], shape=shape)
            operands, at = (side, x, side), (span, self.spans[0], span)
            x = operate(context, "concat", {"axis": axis}, shown, span, operands, at, None)
        return x

    def windows(self, x: Value, size: Sequence[Dim], step: Sequence[Dim], dilation: Sequence[Dim]) -> Value:
        """`[N, C, W, K]` or `[N, C, W, K, W', K']`: positions and the elements of the windows there."""
        for n in range(len(size)):
            static: Mapping[str, object] = {"size": size[n], "step": step[n], "dilation": dilation[n]}
            x = self.steps.apply("windows", x, self.spans[0], axis=2 + 2 * n, **static)
        return x

    def contracted(self, x: Value, kernel: Value, groups: Dim) -> Value:
        """The products of kernels and windows: for each group and image a matrix `[O, C * K] @ [C * K, W]`."""
        steps, (at, kernel_at) = self.steps, self.spans
        out, channels, *_ = kernel.type.shape
        whole = x.type.shape[1]
        self._channels(channels, whole, groups)
        per_group = exact_quotient(steps.context, out, groups, kernel_at, f"the kernel has {out} outputs")
        count = kernel.type.rank - 2
        positions = [2 + 2 * n for n in range(count)]
        elements = [axis + 1 for axis in positions]
        shape = tuple(x.type.shape[axis] for axis in positions)
        x = steps.apply("unflatten", x, at, axis=1, sizes=(groups, channels))
        x = steps.transpose(x, at, [0, 1, 2, *(axis + 1 for axis in elements), *(axis + 1 for axis in positions)])
        x = steps.merge(x, at, 2, 1 + count)
        x = steps.merge(x, at, 3, count)
        kernel = steps.apply("unflatten", kernel, kernel_at, axis=0, sizes=(groups, per_group))
        kernel = steps.merge(kernel, kernel_at, 2, 1 + count)
        stretched = (x.type.shape[0], *kernel.type.shape)
        kernel = steps.apply("broadcast", kernel, kernel_at, shape=stretched)
        result = operate(steps.context, "matmul", {}, "conv", steps.span, (kernel, x), (kernel_at, at), None)
        result = steps.merge(result, steps.span, 1, 2)
        return result if count == 1 else steps.apply("unflatten", result, steps.span, axis=2, sizes=shape)

    def _channels(self, channels: Dim, whole: Dim, groups: Dim) -> None:
        why = f"x has {whole} channels, and the kernel {channels}"
        if groups is not _ONE:
            why += f" for each of {groups} groups"
        help_ = _depthwise(self.steps.span, whole) if channels is _ONE and groups is _ONE else ()
        oblige(self.steps.context, equal(groups * channels, whole), self.spans[1], why, help_)
