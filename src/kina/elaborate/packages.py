"""Existential types: sizes that are known only when the program runs, given a name (opened) or hidden (packed)."""

from __future__ import annotations

from collections.abc import Mapping

from kina.core.ir import Open, Stack, Struct, Tree, Value, tree_type
from kina.diagnostics import form_errors
from kina.dims.dim import Dim
from kina.dims.proposition import Proposition
from kina.dims.proposition import substitute as substitute_proposition
from kina.elaborate.context import Context, Meaning, Package
from kina.elaborate.matching import conform
from kina.elaborate.obligations import oblige
from kina.source import Span
from kina.types import Exists, List, Record, Tensor, Tuple, Type, substitute


def pack(
    context: Context, found: Meaning, wanted: Exists, span: Span, what: str, declared: Span | None
) -> Package:  # fmt: skip
    """What was found as a value of the existential type `wanted`: its names are found by laying the types side by
    side, and what the type says of them is obliged."""
    if isinstance(found, Package):
        found = found.tree
    if not isinstance(found, Value | tuple | Struct | Stack):
        raise context.report(found.misuse(span))
    known: dict[str, Dim] = {}
    _witness(wanted.body, tree_type(found), frozenset(wanted.names), known)
    missing = [name for name in wanted.names if name not in known]
    if missing:
        raise context.report(form_errors.no_witness(span, missing, wanted, tree_type(found)))
    conform(context, found, substitute(wanted.body, known), span, what, declared)
    for claim in wanted.requires:
        oblige(context, substitute_proposition(claim, known), span, f"{what} promises {claim}")
    return Package(wanted, tuple(known[name] for name in wanted.names), found)


def _witness(wanted: Type, got: Type, names: frozenset[str], known: dict[str, Dim]) -> None:
    match wanted, got:
        case Tensor(shape=shape), Tensor(shape=sizes) if len(shape) == len(sizes):
            for pattern, size in zip(shape, sizes, strict=True):
                if str(pattern) in names:
                    known.setdefault(str(pattern), size)
        case Tuple(items), Tuple(others):
            for item, other in zip(items, others, strict=False):
                _witness(item, other, names, known)
        case Record(fields=fields), Record(fields=other_fields):
            for (_, item), (_, other) in zip(fields, other_fields, strict=False):
                _witness(item, other, names, known)
        case List(size, item), List(other_size, other):
            if str(size) in names:
                known.setdefault(str(size), other_size)
            _witness(item, other, names, known)


def opened(context: Context, type_: Exists) -> Mapping[str, Dim]:
    """New dimensions for the names of an existential type, with what it says of them as facts."""
    replacement = dict(zip(type_.names, context.measured_dimensions(type_.names), strict=True))
    context.assume(*(substitute_proposition(claim, replacement) for claim in type_.requires))
    return replacement


def open_scalar(
    context: Context, value: Value, wanted: str, facts: tuple[Proposition, ...], tree: Tree, span: Span
) -> Package:
    """A scalar as a new dimension called `wanted`; `facts`, which say so by that name, are checked when it is made."""
    (dimension,) = context.measured_dimensions((wanted,))
    claims = tuple(substitute_proposition(claim, {wanted: dimension}) for claim in facts)
    context.statements.append(Open(str(dimension), value, claims, span))
    context.assume(*claims)
    return Package(Exists((wanted,), facts, tree_type(tree)), (dimension,), tree)
