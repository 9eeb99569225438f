"""Re-checks the types of core: run after every pass in tests, and everywhere under KINA_VERIFY=1."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

from kina.core.ir import (
    Apply,
    Block,
    Call,
    Check,
    For,
    Function,
    If,
    Open,
    Require,
    Statement,
    Value,
    While,
    leaves,
    made_by,
    statements_within,
    tree_type,
)
from kina.dims.dim import Dim, constant, variable
from kina.dims.proposition import Comparison, Proposition, at_most, equal, negate
from kina.dims.proposition import substitute as substitute_proposition
from kina.dims.prover import Facts, settle
from kina.dims.regroup import regroup
from kina.ops.base import DTypeClass, result_type
from kina.types import DType, Exists, List, Record, Shape, Tensor, Tuple, Type, substitute, substitute_tensor


class InvalidCore(Exception):
    """Core that is not well typed: a fault in Kina, never in the program."""

    def __init__(self, message: str) -> None:
        super().__init__(f"internal fault in Kina: {message}")
        self.message = message


def verify(function: Function) -> None:
    """Raises InvalidCore unless every statement is well typed, in scope and has its obligations proved."""
    try:
        _unique([v.name for v in function.inputs], function.statements)
        body = _Body(set(function.inputs), Facts(function.requires))
        body.statements(function.statements)
        body.used(function.outputs)
        wanted = function.result_type
        if isinstance(wanted, Exists):
            witnesses = dict(zip(wanted.names, function.witnesses, strict=True))
            for claim in wanted.requires:
                _prove(substitute_proposition(claim, witnesses), body.facts)
            wanted = substitute(wanted.body, witnesses)
        _same_type(tree_type(function.result), wanted, body.facts)
    except InvalidCore as fault:
        raise InvalidCore(f"in {function.name}{fault.message}") from None


def _unique(names: list[str], statements: tuple[Statement, ...]) -> None:
    for statement in statements_within(statements):
        names += [v.name for v in made_by(statement)]
        if isinstance(statement, For | While):
            names += [v.name for v in statement.states]
    if len(set(names)) != len(names):
        raise InvalidCore(": a name is used twice")


@dataclass(slots=True)
class _Body:
    """What is in scope and known at a place of a function."""

    scope: set[Value]
    facts: Facts

    def statements(self, statements: tuple[Statement, ...]) -> None:
        for statement in statements:
            try:
                self.statement(statement)
            except InvalidCore as fault:
                raise InvalidCore(f", at {statement}: {fault.message}") from None
            self.scope.update(made_by(statement))

    def statement(self, statement: Statement) -> None:
        match statement:
            case Apply(result, operation, arguments):
                self.used(arguments)
                types = tuple(v.type for v in arguments)
                rule = _Verifying(self.facts, types)
                _same_type(result_type(rule, operation, types), result.type, self.facts)
            case Call():
                self.call(statement)
            case Check(claim):
                self.facts = self.facts.assume(claim)
            case Open(_, value, claims):
                self.used([value])
                _same_type(value.type, Tensor(DType.I64, ()), self.facts)
                self.facts = self.facts.assume(*claims)
            case Require(condition):
                self.used([condition])
                _same_type(condition.type, Tensor(DType.BOOL, ()), self.facts)
            case If(results, condition, then, otherwise):
                facts: list[tuple[Proposition, ...]] = [(), ()]
                if isinstance(condition, Value):
                    self.used([condition])
                    _same_type(condition.type, Tensor(DType.BOOL, ()), self.facts)
                else:
                    facts = [(condition,), (negate(condition),)]
                for block, known in zip((then, otherwise), facts, strict=True):
                    self.block(block, known, (), [v.type for v in results])
            case For():
                self.loop(statement)
            case While():
                self.loop_while(statement)

    def call(self, call: Call) -> None:
        callee = call.function
        given = [v for tree in call.arguments for v in leaves(tree)]
        self.used(given)
        replacement = dict(zip(callee.dimensions, call.dimensions, strict=True))
        for value, parameter in zip(given, callee.inputs, strict=True):
            _same_type(value.type, substitute(parameter.type, replacement), self.facts)
        for claim in callee.requires:
            _prove(substitute_proposition(claim, replacement), self.facts)
        result = substitute(callee.result_type, replacement)
        if isinstance(result, Exists):
            opened = {n: variable(o) for n, o in zip(result.names, call.opened, strict=True)}
            self.facts = self.facts.assume(*(substitute_proposition(claim, opened) for claim in result.requires))
            result = substitute(result.body, opened)
        _same_type(tree_type(call.result), result, self.facts)

    def loop(self, loop: For) -> None:
        index = variable(loop.index)
        self.used(loop.initial)
        for value, state in zip(loop.initial, loop.states, strict=True):
            _same_type(value.type, substitute_tensor(state.type, {loop.index: constant(0)}), self.facts)
        after = {loop.index: index + 1}
        wanted = [substitute_tensor(v.type, after) for v in loop.states]
        yielded = loop.results[len(loop.states) :]
        wanted += [v.type.with_shape(v.type.shape[1:]) for v in yielded]
        self.block(loop.body, (Comparison("<", index, loop.bound),), loop.states, wanted)
        for result, state in zip(loop.results, loop.states, strict=False):
            _same_type(substitute_tensor(state.type, {loop.index: loop.bound}), result.type, self.facts)
        for result in yielded:
            _prove(equal(result.type.shape[0], loop.bound), self.facts)

    def loop_while(self, loop: While) -> None:
        index, steps = variable(loop.index), variable(loop.steps)
        self.used(loop.initial)
        for value, state in zip(loop.initial, loop.states, strict=True):
            _same_type(value.type, substitute_tensor(state.type, {loop.index: constant(0)}), self.facts)
        inside = () if loop.bound is None else (Comparison("<", index, loop.bound),)
        self.block(loop.condition, inside, loop.states, [Tensor(DType.BOOL, ())])
        after = {loop.index: index + 1}
        self.block(loop.body, inside, loop.states, [substitute_tensor(v.type, after) for v in loop.states])
        if loop.bound is not None:
            self.facts = self.facts.assume(Comparison("<=", steps, loop.bound))
        for result, state in zip(loop.results, loop.states, strict=True):
            _same_type(substitute_tensor(state.type, {loop.index: steps}), result.type, self.facts)

    def block(
        self, block: Block, facts: tuple[Proposition, ...], states: tuple[Value, ...], wanted: list[Tensor]
    ) -> None:
        inner = _Body(self.scope | set(states), self.facts.assume(*facts))
        inner.statements(block.statements)
        inner.used(block.results)
        for value, type_ in zip(block.results, wanted, strict=True):
            _same_type(value.type, type_, inner.facts)

    def used(self, values: Iterable[Value]) -> None:
        for value in values:
            if value not in self.scope:
                raise InvalidCore(f": {value.name} is used before it is made")


def _prove(goal: Proposition, facts: Facts) -> None:
    if not settle(goal, facts).status.proved:
        raise InvalidCore(f": {goal} is not proved")


def _same_type(got: Type, wanted: Type, facts: Facts) -> None:
    """Whether a value of the type `got` may stand where `wanted` is."""
    match got, wanted:
        case Tensor(dtype, shape), Tensor(other_dtype, sizes) if dtype is other_dtype and len(shape) == len(sizes):
            for left, right in zip(shape, sizes, strict=True):
                _prove(equal(left, right), facts)
            if wanted.bound is not None:
                if got.bound is None:
                    raise InvalidCore(f": {got} is not {wanted}")
                _prove(at_most(got.bound, wanted.bound), facts)
        case Tuple(items), Tuple(others) if len(items) == len(others):
            for item, other in zip(items, others, strict=True):
                _same_type(item, other, facts)
        case Record(name, _, fields), Record(other_name, _, other_fields) if name == other_name:
            if [f for f, _ in fields] != [f for f, _ in other_fields]:
                raise InvalidCore(f": {got} is not {wanted}")
            for (_, item), (_, other) in zip(fields, other_fields, strict=True):
                _same_type(item, other, facts)
        case List(size, item), List(other_size, other):
            _prove(equal(size, other_size), facts)
            _same_type(item, other, facts)
        case _:
            raise InvalidCore(f": {got} is not {wanted}")


@dataclass(frozen=True, slots=True)
class _Verifying:
    """The verifier's side of `ops.base.Rule`: every demand has to be met."""

    facts: Facts
    operands: tuple[Tensor, ...]

    def same_size(self, first: tuple[int, int], second: tuple[int, int], symbol: str) -> None:
        (i, a), (j, b) = first, second
        x, y = self.operands[i], self.operands[j]
        if not (-x.rank <= a < x.rank and -y.rank <= b < y.rank):
            raise InvalidCore("an operand lacks an axis")
        _prove(equal(x.shape[a], y.shape[b]), self.facts)

    def same_dtype(self, first: int, second: int) -> None:
        if self.operands[first].dtype is not self.operands[second].dtype:
            raise InvalidCore("the operands have different dtypes")

    def dtype(self, operand: int, wanted: DTypeClass) -> None:
        if not wanted.holds(self.operands[operand].dtype):
            raise InvalidCore(f"operand {operand} is not {wanted.value}")

    def same_rank(self, first: int, second: int) -> None:
        if self.operands[first].rank != self.operands[second].rank:
            raise InvalidCore("the operands have different numbers of axes")

    def rank(self, operand: int, at_least: int) -> None:
        if self.operands[operand].rank < at_least:
            raise InvalidCore(f"operand {operand} has too few axes")

    def index(self, operand: int, size: Dim) -> None:
        bound = self.operands[operand].bound
        if bound is None:
            raise InvalidCore(f"operand {operand} holds numbers that were not checked")
        _prove(at_most(bound, size), self.facts)

    def require(self, goal: Proposition, why: str) -> None:
        _prove(goal, self.facts)

    def regroups(self, source: Shape, target: Shape) -> None:
        if not isinstance(regroup(source, target, self.facts), tuple):
            raise InvalidCore("reshape does not regroup")

    def refuse(self, message: str, *, operand: int | None = None, help: str | None = None) -> NoReturn:
        raise InvalidCore(message)
