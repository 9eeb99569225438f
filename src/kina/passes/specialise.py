"""Calls inlined away: after this, a function is one block of operations, checks, loops and branches."""

from __future__ import annotations

from dataclasses import replace

from kina.core.copying import Copy, Naming
from kina.core.ir import Function
from kina.core.names import Names
from kina.types import substitute


def specialise(function: Function) -> Function:
    """The function without calls. Sizes stay symbolic; names stay unique."""
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
