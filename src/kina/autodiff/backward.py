"""Reverse mode, second half: the adjoint of statements that are linear in the tangents.

They are walked from the last to the first; each hands the cotangent of what it made on to what it was made from
(`Operation.transpose`). A value that was used several times gets the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from kina.autodiff.builder import Builder
from kina.autodiff.dependence import free_values
from kina.core.copying import Copy
from kina.core.ir import Apply, Block, For, If, Statement, Value, made_by
from kina.dims.dim import variable
from kina.ops.terms import Term
from kina.types import substitute_tensor


@dataclass(slots=True)
class Backward:
    """`linear` are the values that stand for tangents: they exist no longer, only their cotangents do."""

    builder: Builder
    linear: set[Value]
    cotangents: dict[Value, Term] = field(default_factory=dict)
    """Those that are not zero, of what has been reached so far."""

    def add(self, value: Value, cotangent: Term | None) -> None:
        if cotangent is not None and value in self.linear:
            known = self.cotangents.get(value)
            self.cotangents[value] = cotangent if known is None else known + cotangent

    def statements(self, statements: Sequence[Statement]) -> None:
        """Emits what is not linear among the statements, then the adjoint of what is."""
        linear = []
        for statement in statements:
            if not self.linear.isdisjoint(made_by(statement)):
                linear.append(statement)
            elif isinstance(statement, Apply):
                self.builder.copy(statement)
            else:
                self.builder.statements.append(statement)
        for statement in reversed(linear):
            match statement:
                case Apply():
                    self._apply(statement)
                case If():
                    self._branch(statement)
                case For():
                    self._loop(statement)
                case _:
                    raise TypeError(f"{statement} is not linear")

    def _apply(self, statement: Apply) -> None:
        cotangent = self.cotangents.pop(statement.result, None)
        if cotangent is None:
            return
        self.builder.span = statement.span
        operands = [self.builder.term(a) for a in statement.arguments]
        for number, operand in enumerate(statement.arguments):
            if operand in self.linear:
                self.add(operand, statement.operation.transpose(cotangent, operands, number))

    # ------------------------------------------------------------ blocks

    def _branch(self, statement: If) -> None:
        """The adjoint of the block that runs: what all that it reads gets of the results' cotangents."""
        cotangents = [self.cotangents.pop(v, None) for v in statement.results]
        if not any(cotangents):
            return
        blocks = (statement.then, statement.otherwise)
        read = dict.fromkeys(v for b in blocks for v in self._outside(b))
        adjoints = []
        for block in blocks:
            with self.builder.block() as statements:
                inside = self._inside(block, cotangents)
                results = [self._or_zeros(inside.cotangents.get(v), v) for v in read]
            adjoints.append(Block(tuple(statements), tuple(results)))
        found = tuple(self.builder.beside("ct_", v) for v in read)
        then, otherwise = adjoints
        self.builder.statements.append(replace(statement, results=found, then=then, otherwise=otherwise))
        for value, cotangent in zip(read, found, strict=True):
            self.add(value, self.builder.term(cotangent))

    def _loop(self, loop: For) -> None:
        """The steps from the last to the first. States are the cotangents of the loop's states, typed by the step, and
        the sums of what all else that the steps read has got."""
        cotangents = [self.cotangents.pop(v, None) for v in loop.results]
        if not any(cotangents):
            return
        builder, count = self.builder, len(loop.states)
        read = [v for v in self._outside(loop.body) if v not in loop.states]
        step = variable(loop.index)
        after = [builder.beside("ct_", v, substitute_tensor(v.type, {loop.index: step + 1})) for v in loop.states]
        sums = [builder.beside("ct_", v) for v in read]
        with builder.block() as statements:
            now = (c and c.slice(0, step, step + 1).squeeze(0) for c in cotangents[count:])
            inside = self._inside(loop.body, [*map(builder.term, after), *now])
            before = [self._or_zeros(inside.cotangents.get(v), v) for v in loop.states]
            more = [inside.cotangents.get(v) for v in read]
            totals = [s if m is None else (builder.term(s) + m).value for s, m in zip(sums, more, strict=True)]
        last = [self._or_zeros(c, v) for c, v in zip(cotangents, loop.results[:count], strict=False)]
        nothing = [builder.zeros(v.type) for v in read]
        received = (*loop.initial, *read)
        found = tuple(builder.beside("ct_", v) for v in received)
        # In the loop's own terms so far: now step i becomes the (bound - 1 - i)-th.
        copy = Copy(builder.names)
        index = builder.names.dimensions.fresh(loop.index)
        copy.dims[loop.index] = loop.bound - 1 - variable(index)
        states = tuple(map(copy.value, (*after, *sums)))
        body = copy.block(Block(tuple(statements), (*before, *totals)))
        builder.statements.append(For(found, index, loop.bound, states, (*last, *nothing), body, loop.span))
        for value, cotangent in zip(received, found, strict=True):
            self.add(value, builder.term(cotangent))

    def _inside(self, block: Block, cotangents: Sequence[Term | None]) -> Backward:
        """The adjoint of a block for cotangents of its results."""
        inside = Backward(self.builder, self.linear)
        for value, cotangent in zip(block.results, cotangents, strict=True):
            inside.add(value, cotangent)
        inside.statements(block.statements)
        return inside

    def _outside(self, block: Block) -> list[Value]:
        """The linear values that a block reads and does not make."""
        return [v for v in free_values(block.statements, block.results) if v in self.linear]

    def _or_zeros(self, cotangent: Term | None, like: Value) -> Value:
        return self.builder.zeros(like.type) if cotangent is None else cotangent.value
