"""The operations: one file a family, one declaration an operation."""

from kina.ops import (
    arranging,
    contractions,
    creation,
    division,
    elementwise,
    indexing,
    normalising,
    ordering,
    random,
    reductions,
    scans,
    shape,
    windows,
    writing,
)
from kina.ops.base import Entry, Operation, Rule, Sample, all_operations, lookup

__all__ = [
    "Entry", "Operation", "Rule", "Sample", "all_operations", "arranging", "contractions", "creation", "division",
    "elementwise", "indexing", "lookup", "normalising", "ordering", "random", "reductions", "scans", "shape", "windows",
    "writing",
]  # fmt: skip
