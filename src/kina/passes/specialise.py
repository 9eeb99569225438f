"""Calls inlined away: after this, a function is one block of operations, checks, loops and branches."""

from __future__ import annotations

from dataclasses import replace

from kina.core.copying import Copy, Naming
from kina.core.ir import Call, Function, statements_within
from kina.core.names import Names
from kina.diagnostics import KinaError
from kina.types import substitute

_MOST = 200_000
"""Statements beyond which a program is not what anyone meant: a network of a thousand layers written out has fewer."""


def specialise(function: Function) -> Function:
    """The function without calls. Sizes stay symbolic; names stay unique.

    Raises KinaError where that would be more statements than can be compiled: each call is a copy.
    """
    count = _inlined(function, {})
    if count > _MOST:
        raise KinaError(
            f"{function.name} calls functions that call functions so often that it has {count:,} statements with all "
            f"calls written out, of {_MOST:,} at most; compute what is needed twice once, with `let`, and repeat "
            "with `for`"
        )
    names = Naming(Names(v.name for v in function.inputs), Names(function.dimensions))
    inside = Copy(names)
    statements = inside.statements(function.statements)
    return replace(
        function,
        statements=statements,
        result=inside.tree(function.result),
        result_type=substitute(function.result_type, inside.dims),
        witnesses=tuple(map(inside.dim, function.witnesses)),
    )


def _inlined(function: Function, known: dict[str, int]) -> int:
    """How many statements a function has with all calls written out."""
    if function.name not in known:
        known[function.name] = sum(
            _inlined(s.function, known) if isinstance(s, Call) else 1 for s in statements_within(function.statements)
        )
    return known[function.name]
