"""What composite operations are made of: `softmax` as maximum, exponential, sum and quotient.

The compiler does not need it, as each operation says what its elements are; whoever reads core does (`kina explain
--core --decompose`), and so does whoever brings programs to where only simpler operations are known.
"""

from __future__ import annotations

from dataclasses import replace

from kina.autodiff.builder import Builder
from kina.core.copying import Naming
from kina.core.ir import Apply, Block, Call, For, Function, If, Statement, Value, While, values_of
from kina.core.names import Names


def decompose(function: Function) -> Function:
    """The same function, and functions that it calls, of operations that are not made of others.

    It means the same up to rounding.
    """
    return _Decomposing({}).function(function)


class _Decomposing:
    """Each function once: `known` are those that are done."""

    def __init__(self, known: dict[Function, Function]) -> None:
        self.known = known

    def function(self, function: Function) -> Function:
        if function not in self.known:
            names = Naming(Names(v.name for v in values_of(function)), Names(function.dimensions))
            self.known[function] = replace(function, statements=self.block(function.statements, names))
        return self.known[function]

    def block(self, statements: tuple[Statement, ...], names: Naming) -> tuple[Statement, ...]:
        builder = Builder(names)
        for statement in statements:
            match statement:
                case Apply():
                    _apply(builder, statement)
                case Call(function=callee):
                    builder.statements.append(replace(statement, function=self.function(callee)))
                case _:
                    builder.statements.append(self.inside(statement, names))
        return tuple(builder.statements)

    def inside(self, statement: Statement, names: Naming) -> Statement:
        def of(block: Block) -> Block:
            return replace(block, statements=self.block(block.statements, names))

        match statement:
            case If(then=then, otherwise=otherwise):
                return replace(statement, then=of(then), otherwise=of(otherwise))
            case For(body=body):
                return replace(statement, body=of(body))
            case While(condition=condition, body=body):
                return replace(statement, condition=of(condition), body=of(body))
            case _:
                return statement


def _apply(builder: Builder, statement: Apply) -> None:
    """The operation, or what it is made of; the last statement makes the value that it made."""
    builder.span = statement.span
    terms = [builder.term(a) for a in statement.arguments]
    found = statement.operation.decompose(*terms) if terms else None
    if found is None:
        builder.copy(statement)
        return
    last = builder.statements.pop()
    assert isinstance(last, Apply)
    assert isinstance(found.value, Value)
    assert last.result is found.value
    builder.copy(replace(last, result=statement.result))
