"""What PyTorch and NumPy call things, and what Kina calls them: help where a name is not defined."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from kina.diagnostics.diagnostic import Edit, Help
from kina.elaborate.guesses import parenthesised
from kina.ops import Entry, all_operations, lookup
from kina.ops.base import Kind, Parameter
from kina.source import Span
from kina.types import DType

_METHOD = re.compile(r"\b(?:torch|F|x)\.(\w+)\(")
_OTHER_WORDS: Mapping[str, str] = {
    "view": "reshape", "flatten": "reshape", "swapaxes": "transpose", "moveaxis": "transpose", "T": "transpose",
    "mT": "transpose", "t": "transpose", "concatenate": "concat", "broadcast_to": "broadcast", "expand_as": "broadcast",
    "bmm": "matmul", "mm": "matmul", "dot": "matmul", "tile": "repeat", "chunk": "slice", "masked_fill": "select",
    "astype": "cast", "float": "cast", "half": "cast", "type": "cast", "square": "mul", "reciprocal": "recip",
    "arange": "iota", "range": "iota", "cat": "concat",
    "where": "select", "unsqueeze": "expand_dims", "clip": "clamp", "abs_": "abs", "pow": "pow",
}  # fmt: skip
_DTYPES: Mapping[str, DType] = {
    "float": DType.F32, "float32": DType.F32, "f32": DType.F32, "double": DType.F64, "float64": DType.F64,
    "half": DType.F16, "float16": DType.F16, "bfloat16": DType.BF16, "int64": DType.I64, "long": DType.I64,
    "int": DType.I64, "int32": DType.I32, "int16": DType.I16, "int8": DType.I8, "uint8": DType.U8, "bool": DType.BOOL,
}  # fmt: skip


def usage(entry: Entry) -> str:
    """`reduce[sum|mean|..., axis=...] x`, from the declaration."""
    inside = ", ".join(
        "|".join(p.choices) if p.kind is Kind.CHOICE else "dtype" if p.kind is Kind.DTYPE else f"{spellings(p)[0]}=..."
        for p in entry.parameters
        if p.bracket and p.default is None
    )
    trailing = {Kind.SHAPE: "[sizes]", Kind.PERMUTATION: "[axes]", Kind.SIZE: "size", Kind.DIM: "dimension"}
    behind = [p for p in entry.parameters if not p.bracket]
    after = [trailing.get(p.kind, p.name) if len(behind) == 1 else p.name for p in behind]
    *before, last = entry.operand_names or ("",)
    operands = [*before, f"{last} ..." if entry.variadic else last]
    return " ".join(filter(None, [entry.name + (f"[{inside}]" if inside else ""), *operands, *after]))


def spellings(p: Parameter) -> tuple[str, ...]:
    """The names under which a bracket may give an attribute."""
    return ("axis", "axes") if p.kind is Kind.AXES else (p.name,)


def kina_spelling(at: Span, target: Span | None = None) -> tuple[Help, ...]:
    """How Kina writes what PyTorch calls by the name that stands at `at`; nothing where nothing is known.

    `target` is what stands before it and a point, where it is the name of a field or method.
    """
    name = at.text
    reduction = lookup("reduce")
    if reduction is not None and name in {c for p in reduction.parameters for c in p.choices}:
        advice = f"a reduction is written reduce[{name}, axis=...] x, or reduce_keep[{name}, axis=...] x"
        return Help(advice, _as_reduction(at) if target is None else ()),
    entry = lookup(name) or lookup(_OTHER_WORDS.get(name, "")) or lookup(_torch_names().get(name, ""))
    if entry is None:
        return ()
    known = f"write {usage(entry)}" if entry.name == name else f"what PyTorch calls `{name}` is here {usage(entry)}"
    edits = (Edit(at, entry.name),) if target is None else _as_call(at, target, entry)
    return Help(known, edits),


def _as_reduction(at: Span) -> tuple[Edit, ...]:
    """`sum[axis=1]` as `reduce[sum, axis=1]`."""
    source = at.source
    bracket = source.text[at.end : at.end + 1] == "["
    return (Edit(Span(source, at.start, at.end + 1), f"reduce[{at.text}, "),) if bracket else ()


def _as_call(at: Span, target: Span, entry: Entry) -> tuple[Edit, ...]:
    """`x.relu` and `x.relu()` as `(relu x)`."""
    source = at.source
    end = at.end + 2 if source.text[at.end : at.end + 2] == "()" else at.end
    order = " [1, 0]" if at.text in ("T", "t") else ""
    return (Edit(Span(source, target.start, end), f"({entry.name} {parenthesised(target)}{order})"),)


def dtype_spelling(name: str) -> DType | None:
    """The dtype that NumPy or PyTorch calls so."""
    return _DTYPES.get(name)


@cache
def _torch_names() -> Mapping[str, str]:
    """PyTorch's name of each operation, from the operations' own declarations."""
    names: dict[str, str] = {}
    for entry in all_operations():
        for word in _METHOD.findall(entry.torch):
            names.setdefault(word, entry.name)
    return names
