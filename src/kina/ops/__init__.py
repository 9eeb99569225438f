"""The operations: one file a family, one declaration an operation."""

from kina.ops import (
    arranging,
    contractions,
    creation,
    elementwise,
    indexing,
    normalising,
    ordering,
    reductions,
    shape,
    writing,
)
from kina.ops.base import Entry, Operation, Rule, Sample, all_operations, lookup

__all__ = [
    "Entry", "Operation", "Rule", "Sample", "all_operations", "arranging", "contractions", "creation", "elementwise",
    "indexing", "lookup", "normalising", "ordering", "reductions", "shape", "writing",
]  # fmt: skip
