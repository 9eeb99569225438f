"""A function of LLVM IR under construction, as text: values, blocks, loops, sizes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from kina.dims.atoms import Atom, CeilDiv, FloorDiv, Maximum, Minimum, Modulo, Variable, parts
from kina.dims.dim import Dim, of_monomial
from kina.types import DType

_REGISTER = {
    DType.F64: "double",
    DType.F32: "float",
    DType.F16: "half",
    DType.BF16: "i16",
    DType.I64: "i64",
    DType.I32: "i32",
    DType.I16: "i16",
    DType.I8: "i8",
    DType.U8: "i8",
    DType.BOOL: "i1",
}


@dataclass(frozen=True, slots=True)
class Operand:
    """A scalar (`lanes` 1) or a vector in a register, or a literal scalar."""

    text: str
    dtype: DType
    lanes: int = 1

    @property
    def type(self) -> str:
        return register_type(self.dtype, self.lanes)

    def __str__(self) -> str:
        return f"{self.type} {self.text}"


def register_type(dtype: DType, lanes: int = 1) -> str:
    """The LLVM type of a value in a register. BF16 is its bits."""
    scalar = _REGISTER[dtype]
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def memory_type(dtype: DType, lanes: int = 1) -> str:
    """The LLVM type of a value in memory: a Bool takes a byte there, an element of a quantised tensor is a block."""
    if dtype.block is not None:
        return f"[{dtype.itemsize} x i8]"
    scalar = "i8" if dtype is DType.BOOL else _REGISTER[dtype]
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def literal(value: float | int | bool, dtype: DType) -> Operand:
    """A constant, rounded once to its dtype."""
    if dtype is DType.BOOL:
        return Operand("true" if value else "false", dtype)
    if dtype.is_integer:
        return Operand(str(int(value)), dtype)
    rounded = np.asarray(float(value)).astype(dtype.numpy)
    if dtype is DType.BF16:
        return Operand(str(int(rounded.view(np.uint16))), dtype)
    if dtype is DType.F16:
        return Operand(f"0xH{int(rounded.view(np.uint16)):04X}", dtype)
    return Operand(f"0x{struct.unpack('<Q', struct.pack('<d', float(rounded)))[0]:016X}", dtype)


class Code:
    """The body of one function. Sizes are computed once, in its entry block.

    `fused` says whether the machine's multiply-add rounds once, `avx512` whether it has those instructions.
    """

    def __init__(self, sizes: Mapping[str, str], *, fused: bool = False, avx512: bool = False) -> None:
        self.fused = fused
        self.avx512 = avx512
        self._entry: list[str] = []
        self._lines: list[str] = []
        self._count = 0
        self._block = "start"
        self._variables: dict[str, str] = dict(sizes)
        self._dims: dict[Dim, str] = {}

    # ------------------------------------------------------------ instructions

    def name(self, stem: str = "v") -> str:
        self._count += 1
        return f"%{stem}{self._count}"

    def let(self, instruction: str) -> str:
        """A new register that holds the instruction's value."""
        register = self.name()
        self._lines.append(f"  {register} = {instruction}")
        return register

    def do(self, instruction: str) -> None:
        self._lines.append(f"  {instruction}")

    def at_entry(self, instruction: str, stem: str = "e") -> str:
        """A register computed in the entry block, before everything else."""
        register = self.name(stem)
        self._entry.append(f"  {register} = {instruction}")
        return register

    def label(self, name: str) -> None:
        self._lines.append(f"{name}:")
        self._block = name

    def fresh_label(self, stem: str) -> str:
        self._count += 1
        return f"{stem}{self._count}"

    def function(self, signature: str, prologue: Sequence[str] = ()) -> str:
        """The text of the whole function; the prologue stands before all else."""
        lines = [
            f"define {signature} {{",
            "entry:",
            *prologue,
            *self._entry,
            "  br label %start",
            "start:",
            *self._lines,
        ]
        return "\n".join([*lines, "}"])

    # ------------------------------------------------------------ control

    @contextmanager
    def loop(self, start: str, stop: str, step: int | str = 1) -> Iterator[str]:
        """`for i = start; i < stop; i += step`; the body is what is emitted inside."""
        head, body, done = (self.fresh_label(s) for s in ("head", "body", "done"))
        slot = self.at_entry("alloca i64", "slot")
        self.do(f"store i64 {start}, ptr {slot}")
        self.do(f"br label %{head}")
        self.label(head)
        current = self.let(f"load i64, ptr {slot}")
        more = self.let(f"icmp slt i64 {current}, {stop}")
        self.do(f"br i1 {more}, label %{body}, label %{done}")
        self.label(body)
        yield current
        following = self.let(f"add nsw i64 {current}, {step}")
        self.do(f"store i64 {following}, ptr {slot}")
        self.do(f"br label %{head}")
        self.label(done)

    @contextmanager
    def variable(self, name: str, register: str) -> Iterator[None]:
        """A loop variable has this value inside."""
        kept, self._variables[name] = self._variables.get(name), register
        try:
            yield
        finally:
            if kept is None:
                del self._variables[name]
            else:
                self._variables[name] = kept

    def is_bound(self, name: str) -> bool:
        """Whether a loop variable has a value here."""
        return name in self._variables

    # ------------------------------------------------------------ sizes and indices

    def dim(self, d: Dim) -> str:
        """A size or index expression as an i64: in the entry block if it depends on no loop."""
        if d.value is not None:
            return str(d.value)
        constant = not any(name.startswith("%") for name in d.variables)
        if constant and d in self._dims:
            return self._dims[d]
        place = self.at_entry if constant else self.let
        total: str | None = None
        for monomial, coefficient in d.terms:
            product: str | None = None if coefficient == 1 and monomial else str(coefficient)
            for atom in monomial:
                factor = self._atom(atom, constant)
                product = factor if product is None else place(f"mul nsw i64 {product}, {factor}")
            assert product is not None
            total = product if total is None else place(f"add nsw i64 {total}, {product}")
        assert total is not None
        if constant:
            self._dims[d] = total
        return total

    def _atom(self, atom: Atom, constant: bool) -> str:
        if isinstance(atom, Variable):
            return self._variables[atom.name]
        if not constant:
            alone = of_monomial((atom,))
            if not any(name.startswith("%") for name in alone.variables):
                return self.dim(alone)  # a size inside an index: in the entry block, and maybe of negative numbers
        place = self.at_entry if constant else self.let
        first, second = (self.dim(part) for part in parts(atom))
        match atom:
            case Minimum():
                return place(f"call i64 @llvm.smin.i64(i64 {first}, i64 {second})")
            case Maximum():
                return place(f"call i64 @llvm.smax.i64(i64 {first}, i64 {second})")
            case FloorDiv() | Modulo() | CeilDiv():
                return self._division(atom, first, second, constant)
        raise AssertionError(atom)

    def _division(self, atom: Atom, a: str, b: str, constant: bool) -> str:
        """Rounded down; divisors are positive, as the checker proved. Loop indices are never negative."""
        place = self.at_entry if constant else self.let
        if not constant:
            assert not isinstance(atom, CeilDiv), "indices are not divided rounding up"
            return place(f"{'udiv' if isinstance(atom, FloorDiv) else 'urem'} i64 {a}, {b}")
        if isinstance(atom, CeilDiv):
            negated = place(f"sub i64 0, {a}")
            down = self._floor(negated, b, place)
            return place(f"sub i64 0, {down}")
        down = self._floor(a, b, place)
        if isinstance(atom, FloorDiv):
            return down
        whole = place(f"mul i64 {down}, {b}")
        return place(f"sub i64 {a}, {whole}")

    @staticmethod
    def _floor(a: str, b: str, place: Callable[[str], str]) -> str:
        rest = place(f"srem i64 {a}, {b}")
        quotient = place(f"sdiv i64 {a}, {b}")
        below = place(f"icmp slt i64 {rest}, 0")
        less = place(f"sub i64 {quotient}, 1")
        return place(f"select i1 {below}, i64 {less}, i64 {quotient}")
