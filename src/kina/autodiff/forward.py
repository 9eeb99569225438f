"""Forward mode: beside each statement, the one that computes the tangent of what it makes.

The rule of each operation is its own (`Operation.jvp`); here are those of loops and branches. Values whose tangent is
zero have none. The manner is that of JAX's autodidax.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kina.autodiff.builder import Builder
from kina.autodiff.dependence import reached
from kina.core.ir import Apply, Block, Call, For, If, Statement, Value, While
from kina.ops.base import has_tangent


@dataclass(slots=True)
class Forward:
    """What has been differentiated so far. `tangents` has the values whose tangent is not zero."""

    builder: Builder
    tangents: dict[Value, Value]

    def statements(self, statements: Iterable[Statement]) -> None:
        """Emits the statements, which have no calls among them, and their tangents."""
        for statement in statements:
            self.statement(statement)

    def statement(self, statement: Statement) -> None:
        match statement:
            case Apply():
                self.builder.copy(statement)
                self._apply(statement)
            case If():
                self._branch(statement)
            case For():
                self._loop(statement)
            case While():
                self._loop(statement)
            case Call():
                raise TypeError("calls are inlined before a function is differentiated")
            case _:
                self.builder.statements.append(statement)

    def _apply(self, statement: Apply) -> None:
        result, operation, arguments = statement.result, statement.operation, statement.arguments
        tangents = [self.tangents.get(a) for a in arguments]
        if not has_tangent(result.type) or not any(tangents):
            return
        term = self.builder.term
        self.builder.span = statement.span
        terms = [None if t is None else term(t) for t in tangents]
        tangent = operation.jvp(term(result), [term(a) for a in arguments], terms)
        if tangent is not None:
            self.tangents[result] = tangent.value

    # ------------------------------------------------------------ blocks

    def _branch(self, statement: If) -> None:
        """A result has a tangent if it has one in either block; zeros stand for it in the other."""
        inside = reached((statement,), self.tangents)
        changing = [n for n, v in enumerate(statement.results) if v in inside]
        blocks = []
        for block in (statement.then, statement.otherwise):
            statements, tangents = self._block(block, changing)
            blocks.append(Block(statements, (*block.results, *tangents)))
        results = (*statement.results, *self._tangents([statement.results[n] for n in changing]))
        then, otherwise = blocks
        self.builder.statements.append(replace(statement, results=results, then=then, otherwise=otherwise))

    def _loop(self, loop: For | While) -> None:
        """States with tangents have them as states beside them; results as results."""
        inside = reached((loop,), self.tangents)
        count = len(loop.states)
        changing = [n for n, v in enumerate(loop.states) if v in inside]
        yielding = [n for n, v in enumerate(loop.results) if n >= count and v in inside]
        first = [self.tangents.get(loop.initial[n]) or self.builder.zeros(loop.initial[n].type) for n in changing]
        states = self._tangents([loop.states[n] for n in changing])
        statements, following = self._block(loop.body, [*changing, *yielding])
        results = self._tangents([loop.results[n] for n in (*changing, *yielding)])

        def beside(values: Sequence[Value], tangents: Sequence[Value]) -> tuple[Value, ...]:
            """States and their tangents, then what is yielded and its tangents."""
            split = len(changing)
            return (*values[:count], *tangents[:split], *values[count:], *tangents[split:])

        self.builder.statements.append(
            replace(
                loop,
                results=beside(loop.results, results),
                states=beside(loop.states, states),
                initial=beside(loop.initial, first),
                body=Block(statements, beside(loop.body.results, following)),
            )
        )

    def _block(self, block: Block, changing: Iterable[int]) -> tuple[tuple[Statement, ...], list[Value]]:
        """A block's statements, and the tangents of these of its results."""
        with self.builder.block() as statements:
            self.statements(block.statements)
            results = [block.results[n] for n in changing]
            tangents = [self.tangents.get(v) or self.builder.zeros(v.type) for v in results]
        return tuple(statements), tangents

    def _tangents(self, values: Iterable[Value]) -> list[Value]:
        """New tangents for values that a loop or branch makes."""
        made = []
        for value in values:
            self.tangents[value] = self.builder.beside("d", value)
            made.append(self.tangents[value])
        return made
