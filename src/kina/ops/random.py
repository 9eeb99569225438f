"""Draws as pure operations: numbers are a function of a key and a position, and of nothing else.

The generator is Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3,
SC 2011): a keyed bijection of 64-bit counters that passes BigCrush. The number at a position of a tensor, counted in
row-major order, is what the key makes of that position, so that it is the same on every backend, for any number of
threads, and in whatever order elements are computed. Bits and new keys are those of JAX (`threefry2x32`).

A key is an I64 scalar. From one key either numbers are drawn once, or new keys are made (`fold_in`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from kina.dims.dim import Dim, constant, variable
from kina.dims.proposition import Comparison
from kina.lazy import np
from kina.ops.base import Array, DTypeClass, Kind, Operation, Rule, Sample, argument, attribute, operation
from kina.ops.precision import narrowed
from kina.ops.scalar import Call, Cast, Element, Index, Literal, Scalar, SizeValue
from kina.types import DType, Shape, Tensor

# ---------------------------------------------------------------- the generator

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
"""The third word of a key is both others and this, exclusively or'ed."""


def threefry(key: Array, counter: Array) -> Array:
    """What keys make of counters, I64 and broadcast: of each, the upper 32 bits are the first word."""
    first, second = _words(np.asarray(key))
    x, y = _words(np.asarray(counter))
    words = (first, second, first ^ second ^ np.uint32(PARITY))
    with np.errstate(over="ignore"):  # sums of 32 bits wrap
        x, y = x + words[0], y + words[1]
        for group in range(5):
            for turn in ROTATIONS[group % 2]:
                x = x + y
                y = (y << np.uint32(turn) | y >> np.uint32(32 - turn)) ^ x
            x = x + words[(group + 1) % 3]
            y = y + words[(group + 2) % 3] + np.uint32(group + 1)
    return np.asarray((x.astype(np.uint64) << np.uint64(32) | y).astype(np.int64))


def _words(x: Array) -> tuple[Array, Array]:
    bits = x.astype(np.uint64)
    return (bits >> np.uint64(32)).astype(np.uint32), bits.astype(np.uint32)


# ---------------------------------------------------------------- what the draws share

_KEY = Tensor(DType.I64, ())
_BITS = {DType.F64: 53, DType.F32: 24, DType.F16: 11, DType.BF16: 8}
"""How many bits a number in [0, 1) has: as many as all multiples of the smallest step are numbers of the dtype."""
_SMALLEST = 2.0**-63


def _position(shape: Shape, index: Index) -> Dim:
    """Where an element stands in row-major order."""
    at = constant(0)
    for i, size in zip(index, shape, strict=True):
        at = at * size + i
    return at


def _positions(shape: Sequence[Dim]) -> Array:
    sizes = tuple(map(int, shape))
    return np.arange(math.prod(sizes), dtype=np.int64).reshape(sizes)


def _after(bits: Scalar, count: int, dtype: DType = DType.I64) -> Scalar:
    """The bits without the last `count`, as a number that is not negative."""
    return Call("shift_right", (bits, Literal(count, dtype)))


def _scaled(number: Scalar, by: float, dtype: DType, *, middle: bool = False) -> Scalar:
    """An integer as a float, times a power of two; `middle` takes the middle of its step, which is not 0."""
    x: Scalar = Cast(number, dtype)
    if middle:
        x = Call("add", (x, Literal(0.5, dtype)))
    return Call("mul", (x, Literal(by, dtype)))


def _unit(bits: Scalar, dtype: DType) -> Scalar:
    """A number in [0, 1), in the dtype in which `dtype` is computed."""
    count = _BITS[dtype]
    number = _after(bits, 64 - count)
    if count < 32:
        number = Cast(number, DType.I32)  # vectors of these are converted fast
    return _scaled(number, 2.0**-count, dtype.accumulator)


def _np_unit(bits: Array, dtype: DType) -> Array:
    count = _BITS[dtype]
    wide = dtype.accumulator.numpy
    return np.asarray(_np_after(bits, 64 - count).astype(wide) * wide.type(2.0**-count))


def _np_after(bits: Array, count: int) -> Array:
    return np.asarray((bits.astype(np.uint64) >> np.uint64(count)).astype(np.int64))


class _Draw(Operation):
    """What draws of a shape from a key share."""

    shape: Shape
    operand_names = ("key",)
    family = "random"
    keeps_dtype = False
    flat = True

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        _a_key(rule, operands[0])
        return self.drawn(rule)

    def drawn(self, rule: Rule) -> Tensor:
        raise NotImplementedError

    def bits(self, index: Index) -> Scalar:
        return Call("threefry", (Element(0, ()), SizeValue(_position(self.shape, index))))

    def np_bits(self, key: Array) -> Array:
        return threefry(key, _positions(self.shape))


class _FloatDraw(_Draw):
    """Draws whose dtype is given in the bracket."""

    dtype: DType

    def drawn(self, rule: Rule) -> Tensor:
        if not self.dtype.is_float:
            rule.refuse(f"{self.name} draws floats, not {self.dtype}")
        return Tensor(self.dtype, self.shape)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        floats = (DType.F32, DType.F64, DType.F16, DType.BF16)
        found = [Sample(cls(dtype, (_A, _B)), (_KEY,)) for dtype in floats]  # type: ignore[call-arg]
        return [*found, Sample(cls(DType.F32, ()), (_KEY,))]  # type: ignore[call-arg]


def _a_key(rule: Rule, key: Tensor) -> None:
    if key.with_bound(None) != _KEY:
        rule.refuse(f"a key is an I64 scalar, and this is {key}", operand=0)


_A, _B = variable("A"), variable("B")

# ---------------------------------------------------------------- keys


@operation("fold_in", family="random", torch="jax.random.fold_in(key, n)")
class FoldIn(Operation):
    """A new key for each n: `fold_in key 3`. Of both, the smaller stretches: `fold_in key (iota[I64] N)` are N keys."""

    shapes = "[...S], [...S] -> [...S]"
    example = "fold_in 0 1  // 3989946895414531357"

    operand_names = ("key", "n")
    flat = True

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        rule.same_rank(0, 1)
        for axis in range(operands[0].rank):
            rule.same_size((0, axis), (1, axis), "the size")
        for number, x in enumerate(operands):
            if x.dtype is not DType.I64:
                rule.refuse(f"keys and their numbers are I64, and this is {x}", operand=number)
        return operands[0]

    def reference(self, *operands: Array) -> Array:
        return threefry(operands[0], operands[1])

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        return Call("threefry", (Element(0, index), Element(1, index)))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [Sample(cls(), (Tensor(DType.I64, shape),) * 2) for shape in ((), (_A,), (_A, _B))]


# ---------------------------------------------------------------- draws


@operation("random_bits", family="random", torch="jax.random.bits(key, shape, uint64)")
class RandomBits(_Draw):
    """64 random bits in each place: `random_bits key [N, D]`."""

    shapes = "[] -> shape"
    example = "random_bits 0 [1]  // [7719171245655871230]"

    shape: Shape = argument(Kind.SHAPE)

    def drawn(self, rule: Rule) -> Tensor:
        return Tensor(DType.I64, self.shape)

    def reference(self, *operands: Array) -> Array:
        return self.np_bits(operands[0])

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        return self.bits(index)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [Sample(cls(shape), (_KEY,)) for shape in ((), (_A,), (_A, _B))]


@operation("random_uniform", family="random", torch="torch.rand(shape)")
class RandomUniform(_FloatDraw):
    """Numbers in [0, 1) from a key: `random_uniform[F32] key [N, D]`. Multiples of 2^-24 in F32, of 2^-53 in F64, of
    2^-11 in F16, of 2^-8 in BF16, each as likely as the others."""

    shapes = "[] -> shape"
    example = "reduce[all, axis=0] (random_uniform[F32] 0 [9] < 1.0)  // true"

    dtype: DType = attribute(Kind.DTYPE)
    shape: Shape = argument(Kind.SHAPE)

    def reference(self, *operands: Array) -> Array:
        return _np_unit(self.np_bits(operands[0]), self.dtype).astype(self.dtype.numpy)

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        return narrowed(_unit(self.bits(index), self.dtype), self.dtype)


@operation("random_normal", family="random", torch="torch.randn(shape)")
class RandomNormal(_FloatDraw):
    """Numbers of the standard normal distribution from a key: `random_normal[F32] key [N, D]`.

    By Box and Muller, `sqrt(-2 log u) cos(2 pi v)`: one number of each pair. In F32, u has 32 bits and v 24, so that
    the largest that comes up is 6.8; half precision is F32 rounded; in F64, u has 63 bits and v 53.
    """

    shapes = "[] -> shape"
    example = "abs (random_normal[F32] 0 []) < 7.0  // true"

    dtype: DType = attribute(Kind.DTYPE)
    shape: Shape = argument(Kind.SHAPE)

    def reference(self, *operands: Array) -> Array:
        wide = self.dtype.accumulator.numpy.type
        bits = self.np_bits(operands[0])
        if wide is np.float64:
            at = _positions(self.shape)
            bits, others = threefry(operands[0], 2 * at), threefry(operands[0], 2 * at + 1)
            u, v = (_np_after(bits, 1) + wide(0.5)) * wide(_SMALLEST), _np_unit(others, DType.F64)
        else:
            u = (_np_after(bits, 32).astype(wide) + wide(0.5)) * wide(2.0**-32)
            v = (bits.astype(np.uint32) >> np.uint32(8)).astype(wide) * wide(2.0**-24)
        drawn = np.sqrt(wide(-2.0) * np.log(u)) * np.cos(wide(2 * math.pi) * v)
        return np.asarray(drawn).astype(self.dtype.numpy)

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        wide = self.dtype.accumulator
        if wide is DType.F64:
            at = _position(self.shape, index)
            first, second = (Call("threefry", (Element(0, ()), SizeValue(2 * at + n))) for n in (0, 1))
            u, v = _scaled(_after(first, 1), _SMALLEST, wide, middle=True), _unit(second, DType.F64)
        else:
            bits = self.bits(index)
            u = _scaled(_after(bits, 32), 2.0**-32, wide, middle=True)
            v = _scaled(_after(Cast(bits, DType.I32), 8, DType.I32), 2.0**-24, wide)
        radius = Call("sqrt", (Call("mul", (Literal(-2.0, wide), Call("log", (u,)))),))
        angle = Call("mul", (Literal(2 * math.pi, wide), v))
        return narrowed(Call("mul", (radius, Call("cos", (angle,)))), self.dtype)


@operation("random_gumbel", family="random", torch="-torch.log(-torch.log(torch.rand(shape)))")
class RandomGumbel(_FloatDraw):
    """Numbers of the standard Gumbel distribution from a key: `random_gumbel[F32] key [V]`.

    Where `logits + gumbel` is largest is a draw from `softmax logits`. The tail goes to 2^-63, far beyond what the
    dtype tells apart near 1: a token of a probability of 1e-12 comes up as often as it should.
    """

    shapes = "[] -> shape"
    example = "random_gumbel[F32] 0 [] > -4.0  // true"

    dtype: DType = attribute(Kind.DTYPE)
    shape: Shape = argument(Kind.SHAPE)

    def reference(self, *operands: Array) -> Array:
        wide = self.dtype.accumulator.numpy.type
        u = (_np_after(self.np_bits(operands[0]), 1).astype(wide) + wide(0.5)) * wide(_SMALLEST)
        below_one = np.minimum(u, wide(_below_one(self.dtype.accumulator)))
        return np.asarray(-np.log(-np.log1p(-below_one))).astype(self.dtype.numpy)

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        wide = self.dtype.accumulator
        u = _scaled(_after(self.bits(index), 1), _SMALLEST, wide, middle=True)
        below_one = Call("min", (u, Literal(_below_one(wide), wide)))
        waiting = Call("neg", (Call("log1p", (Call("neg", (below_one,)),)),))
        return narrowed(Call("neg", (Call("log", (waiting,)),)), self.dtype)


def _below_one(dtype: DType) -> float:
    """The largest number of a dtype below 1."""
    return 1.0 - 2.0 ** -_BITS[dtype]


@operation("random_bernoulli", family="random", torch="torch.bernoulli(p)")
class RandomBernoulli(Operation):
    """True with the probability that stands in each place, from a key: `random_bernoulli key p`.

    Where p is 0 or NaN never, where it is 1 always.
    """

    shapes = "[], [...S] -> [...S]"
    example = "random_bernoulli 0 [0.0, 1.0]  // [false, true]"

    operand_names = ("key", "p")
    keeps_dtype = False
    flat = True
    positions = 0  # the key is an integer beside p

    def type(self, rule: Rule, *operands: Tensor) -> Tensor:
        _a_key(rule, operands[0])
        rule.dtype(1, DTypeClass.FLOAT)
        return operands[1].with_dtype(DType.BOOL)

    def reference(self, *operands: Array) -> Array:
        key, p = operands
        dtype = DType.of_numpy(p.dtype)
        assert dtype is not None
        wide = dtype.accumulator
        drawn = _np_unit(threefry(key, np.arange(p.size, dtype=np.int64).reshape(p.shape)), wide)
        return np.asarray(drawn < p.astype(wide.numpy))

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        p = operands[1]
        wide = p.dtype.accumulator
        bits = Call("threefry", (Element(0, ()), SizeValue(_position(p.shape, index))))
        given: Scalar = Element(1, index)
        return Call("lt", (_unit(bits, wide), given if wide is p.dtype else Cast(given, wide)))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        floats = (DType.F32, DType.F64, DType.F16, DType.BF16)
        return [Sample(cls(), (_KEY, Tensor(dtype, (_A, _B))), positive=True) for dtype in floats]


@operation("random_index", family="random", torch="torch.randint(n, shape)")
class RandomIndex(_Draw):
    """Positions below n, each as likely as the others, from a key: `random_index key n [B]`, of type `Idx[n]`.

    They are 63 random bits modulo n, so that the likelihoods differ by less than one in 2^63 / n.
    """

    shapes = "[] -> Idx[n] shape"
    example = "random_index 0 1 [2]  // [0, 0]"

    n: Dim = argument(Kind.SIZE)
    shape: Shape = argument(Kind.SHAPE)

    def drawn(self, rule: Rule) -> Tensor:
        rule.require(Comparison(">=", self.n, constant(1)), "there is a position to be drawn")
        return Tensor(DType.I64, self.shape, self.n)

    def reference(self, *operands: Array) -> Array:
        return np.asarray(_np_after(self.np_bits(operands[0]), 1) % int(self.n))

    def lower(self, operands: tuple[Tensor, ...], index: Index) -> Scalar:
        return Call("remainder", (_after(self.bits(index), 1), SizeValue(self.n)))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [Sample(cls(n, (_A, _B)), (_KEY,)) for n in (_A + 1, constant(6))]
