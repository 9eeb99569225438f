"""Draws without a key, which have the effect `rand`: each is an operation of core with the key of its place."""

from __future__ import annotations

from typing import Any

from kina.core.ir import Value
from kina.diagnostics import form_errors
from kina.elaborate.closures import is_function
from kina.elaborate.context import Context, Meaning
from kina.elaborate.dispatch import as_value, builtin, exactly, infer, tensor
from kina.elaborate.keys import KEY, Keys
from kina.elaborate.matching import conform
from kina.elaborate.operations import Written, form, name_in, operate, read_call
from kina.ops.base import Entry, Kind, Parameter
from kina.syntax import ast
from kina.types import DType, Tensor, Type

_DTYPE = Parameter("dtype", Kind.DTYPE, True, default="F32")
_SHAPE = Parameter("shape", Kind.SHAPE, False)
_UNIFORM = form("uniform", (), (_DTYPE, _SHAPE))
_NORMAL = form("normal", (), (_DTYPE, _SHAPE))
_GUMBEL = form("gumbel", (), (_DTYPE, _SHAPE))
_BERNOULLI = form("bernoulli", ("p",), ())
_BERNOULLI_IN = form("bernoulli", ("p",), (_SHAPE,))
_CATEGORICAL = form("categorical", ("logits",), (Parameter("axis", Kind.AXIS, True, default="-1"),))
_RANDINT = form("randint", (), (Parameter("n", Kind.SIZE, False), _SHAPE))
_PERMUTATION = form("permutation", (), (Parameter("n", Kind.SIZE, False),))


def _written(
    context: Context, e: ast.Expr, entry: Entry, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
    instead: str,
) -> Written:  # fmt: skip
    if context.module.strict:
        raise context.report(form_errors.sugar(e.span, f"`{entry.name}`", f"{instead}, with a key"))
    context.perform("rand", e.span, f"`{entry.name}`")
    return read_call(context, e, name_in(e, entry.name), entry, brackets, arguments, infer, None)


def _drawn(
    context: Context, e: ast.Expr, operation: str, shown: str, static: dict[str, Any], name: str | None,
    *more: Value,
) -> Value:  # fmt: skip
    """An operation on the key of this place."""
    operands = (context.draw_key(e.span), *more)
    return operate(context, operation, static, shown, e.span, operands, (e.span,) * len(operands), name)


def _float_draw(
    context: Context, e: ast.Expr, entry: Entry, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
    expected: Type | None, name: str | None,
) -> Value:  # fmt: skip
    """The dtype is the one in the bracket, else the one that the place wants, else F32."""
    operation = f"random_{entry.name}"
    static = _written(context, e, entry, brackets, arguments, f"{operation}[F32]").static
    wanted = expected.dtype if isinstance(expected, Tensor) and expected.dtype.is_float else DType.F32
    return _drawn(context, e, operation, entry.name, {"dtype": wanted, **static}, name)


@builtin("uniform")
def _uniform(
    context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
    expected: Type | None, name: str | None,
) -> Meaning:  # fmt: skip
    """`uniform [N, D]`, `uniform[F64] [N, D]`: numbers in [0, 1)."""
    return _float_draw(context, e, _UNIFORM, brackets, arguments, expected, name)


@builtin("normal")
def _normal(
    context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
    expected: Type | None, name: str | None,
) -> Meaning:  # fmt: skip
    """`normal [N, D]`, `normal[F64] [N, D]`: numbers of the standard normal distribution."""
    return _float_draw(context, e, _NORMAL, brackets, arguments, expected, name)


@builtin("gumbel")
def _gumbel(
    context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
    expected: Type | None, name: str | None,
) -> Meaning:  # fmt: skip
    """`gumbel [V]`: numbers of the standard Gumbel distribution."""
    return _float_draw(context, e, _GUMBEL, brackets, arguments, expected, name)


@builtin("bernoulli")
def _bernoulli(
    context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
    expected: Type | None, name: str | None,
) -> Meaning:  # fmt: skip
    """`bernoulli p`: true with the probability in each place of p; `bernoulli p [N, D]` stretches p first."""
    entry = _BERNOULLI_IN if len(arguments) > 1 else _BERNOULLI
    (p,), spans, static = _written(context, e, entry, brackets, arguments, "random_bernoulli")
    if "shape" in static and p.type.shape != static["shape"]:
        p = operate(context, "broadcast", static, "bernoulli", e.span, (p,), spans, None)
    return _drawn(context, e, "random_bernoulli", "bernoulli", {}, name, p)


@builtin("categorical")
def _categorical(
    context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
    expected: Type | None, name: str | None,
) -> Meaning:  # fmt: skip
    """`categorical[axis=-1] logits`: a position along an axis with the probabilities `softmax logits`, as `Idx[V]`.

    Where logits plus Gumbel numbers are largest (Gumbel 1954, Yellott 1977): no sum, and -inf is never drawn.
    """
    instead = "reduce[argmax] (logits + random_gumbel[F32] ...)"
    (logits,), spans, static = _written(context, e, _CATEGORICAL, brackets, arguments, instead)
    axis = static.get("axis", logits.type.rank - 1)
    if logits.type.rank == 0:
        shape = "[]"
        raise context.report(form_errors.axis_out_of_range(e.span, "categorical", -1, 0, shape))
    if logits.type.dtype.is_float and logits.type.dtype.accumulator is not logits.type.dtype:
        wide = {"to": logits.type.dtype.accumulator}  # numbers of half precision would often be equal
        logits = operate(context, "cast", wide, "categorical", e.span, (logits,), spans, None)
    noise = _drawn(
        context, e, "random_gumbel", "categorical", {"dtype": logits.type.dtype, "shape": logits.type.shape}, None
    )
    scores = operate(context, "add", {}, "categorical", e.span, (logits, noise), (*spans, e.span), None)
    along = {"kind": "argmax", "axes": (axis,)}
    return operate(context, "reduce", along, "categorical", e.span, (scores,), spans, name)


@builtin("randint")
def _randint(
    context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
    expected: Type | None, name: str | None,
) -> Meaning:  # fmt: skip
    """`randint V [B]`: positions below V, a size, each as likely as the others; of type `Idx[V]`."""
    static = _written(context, e, _RANDINT, brackets, arguments, "random_index").static
    return _drawn(context, e, "random_index", "randint", static, name)


@builtin("permutation")
def _permutation(
    context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
    expected: Type | None, name: str | None,
) -> Meaning:  # fmt: skip
    """`permutation N`: 0, 1, ..., N - 1 in an order that is as likely as any other: that which sorts random bits."""
    n = _written(context, e, _PERMUTATION, brackets, arguments, "argsort of random_bits").static["n"]
    bits = _drawn(context, e, "random_bits", "permutation", {"shape": (n,)}, None)
    return operate(context, "argsort", {"axis": 0}, "permutation", e.span, (bits,), (e.span,), name)


@builtin("with_seed")
def _with_seed(
    context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
    expected: Type | None, name: str | None,
) -> Meaning:  # fmt: skip
    """`with_seed k e`: e with its draws from the key k, and without the effect `rand`."""
    exactly(context, e, "with_seed", ("k", "e"), brackets, arguments)
    key = tensor(context, arguments[0], KEY)
    conform(context, key, KEY, arguments[0].span, "a seed", None)
    outside, context.keys = context.keys, Keys(lambda: key)
    try:
        with context.effects_apart() as performed:
            found = infer(context, arguments[1], expected, name)
            if is_function(found):  # what it draws, it would draw where it is called
                as_value(context, found, arguments[1].span)
    finally:
        context.keys = outside
    context.perform_again({effect: cause for effect, cause in performed.items() if effect != "rand"})
    return found
