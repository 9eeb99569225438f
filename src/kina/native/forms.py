"""The forms of gemm, what it computes with and what its operands are stored as; and what functions are called."""

from __future__ import annotations

from dataclasses import dataclass

from kina.types import DType


@dataclass(frozen=True, slots=True)
class Form:
    """Which gemm: what it computes with ("f32" or "f64"), and what its operands are stored as.

    Operands are stored as what is computed with, or with "f32" as halves, both of one type ("bf16") or one of them; or
    one of them in blocks of a quantised type along K ("q4_1"). The product is never rounded to halves.
    """

    dtype: str
    left: str
    right: str

    @staticmethod
    def plain(dtype: str) -> Form:
        """Operands stored as what is computed with."""
        return Form(dtype, dtype, dtype)

    @property
    def is_plain(self) -> bool:
        return self.left == self.right == self.dtype

    @property
    def is_turned(self) -> bool:
        """Whether the transposed product is computed: what is stored otherwise is best on the right."""
        return self.left != self.right == self.dtype

    @property
    def name(self) -> str:
        """What the function is called."""
        return f"kina_gemm_{self.dtype}" + ("" if self.is_plain else f"_{self.left}_{self.right}")


def tile_name(dtype: str) -> str:
    """What picks a kernel is called so, in all of the process: mixed gemms use those of the plain one."""
    return f"kina_tile_{dtype}"


def reader_name(dtype: DType, lanes: int) -> str:
    """What reads that many numbers of a quantised dtype is called so, inside a program."""
    return f"kina.read.{dtype}.{lanes}"
