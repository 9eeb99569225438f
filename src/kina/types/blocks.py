"""How numbers of the quantised types lie in memory: ggml's block formats, said once for the whole system.

A block holds 32 numbers along the last axis. Its fields stand in this order, all little-endian:

    scale d : F16, and where the format has one a minimum m : F16
    the fifth bits qh, 4 bytes (number i has bit i), where codes have five bits
    codes qs : 32 signed bytes, or 16 bytes of which byte i has number i below and number i + 16 above

A number is `d * (code - centre)`, or `d * code + m`. Source of the formats: ggml's `ggml-quants`, and the gguf package,
whose values the tests compare with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

NUMBERS = 32
"""Numbers in a block of any of the formats."""
NIBBLES = NUMBERS // 2
"""Bytes that hold the lower four bits of their codes."""
SCALE_BYTES = 2


@dataclass(frozen=True, slots=True)
class BlockFormat:
    """One format. `bits` are those of a code; `centre` is the code of 0 where there is no minimum."""

    bits: int
    has_minimum: bool
    centre: int

    @property
    def high_bits_at(self) -> int:
        """Where the fifth bits stand, in bytes from the start of a block."""
        return SCALE_BYTES * (2 if self.has_minimum else 1)

    @property
    def codes_at(self) -> int:
        """Where the codes (or their lower four bits) begin."""
        return self.high_bits_at + (4 if self.bits == 5 else 0)

    @property
    def bytes(self) -> int:
        """What a block takes."""
        return self.codes_at + (NUMBERS if self.bits == 8 else NIBBLES)

    @property
    def fields(self) -> list[tuple[object, ...]]:
        """A block as NumPy describes structures."""
        scales = ["d", "m"] if self.has_minimum else ["d"]
        high = [("qh", "<u4")] if self.bits == 5 else []
        codes = ("qs", "i1", NUMBERS) if self.bits == 8 else ("qs", "u1", NIBBLES)
        return [*((name, "<f2") for name in scales), *high, codes]


BLOCK_FORMATS: Mapping[str, BlockFormat] = {
    "Q8_0": BlockFormat(8, False, 0),
    "Q4_0": BlockFormat(4, False, 8),
    "Q4_1": BlockFormat(4, True, 0),
    "Q5_0": BlockFormat(5, False, 16),
    "Q5_1": BlockFormat(5, True, 0),
}
