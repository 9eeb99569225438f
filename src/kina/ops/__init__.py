"""The operations: one file a family, one declaration an operation."""

from kina.ops import (
    arranging,
    contractions,
    creation,
    division,
    elementwise,
    normalising,
    reductions,
    scans,
    shape,
    windows,
)
from kina.ops.base import Entry, Operation, Rule, Sample, all_operations, lookup

__all__ = [
    "Entry", "Operation", "Rule", "Sample", "all_operations", "arranging", "contractions", "creation", "division",
    "elementwise", "lookup", "normalising", "reductions", "scans", "shape", "windows",
]  # fmt: skip
