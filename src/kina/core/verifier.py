"""Re-checks the types of core: run after every pass in tests, and everywhere under KINA_VERIFY=1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from kina.core.ir import Apply, Call, Check, Function, Value, leaves, tree_type
from kina.dims.proposition import Proposition, equal
from kina.dims.proposition import substitute as substitute_proposition
from kina.dims.prover import Facts, settle
from kina.dims.regroup import regroup
from kina.ops.base import DTypeClass
from kina.types import Shape, Tensor, Tuple, Type, substitute


class InvalidCore(Exception):
    """Core that is not well typed: a fault in Kina, never in the program."""

    def __init__(self, message: str) -> None:
        super().__init__(f"internal fault in Kina: {message}")
        self.message = message


def verify(function: Function) -> None:
    """Raises InvalidCore unless every statement is well typed, in scope and has its obligations proved."""
    facts = Facts(function.requires)
    scope = set(function.inputs)
    names = [v.name for v in function.inputs]
    for statement in function.statements:
        try:
            facts = _verify_statement(statement, scope, facts)
        except InvalidCore as fault:
            raise InvalidCore(f"in {function.name}, at {statement}: {fault.message}") from None
        names += [] if isinstance(statement, Check) else [v.name for v in leaves(statement.result)]
    if len(set(names)) != len(names):
        raise InvalidCore(f"in {function.name}: a name is used twice")
    for value in function.outputs:
        if value not in scope:
            raise InvalidCore(f"in {function.name}: the result {value.name} is never made")
    _same_type(tree_type(function.result), function.result_type, facts)


def _verify_statement(statement: Apply | Call | Check, scope: set[Value], facts: Facts) -> Facts:
    match statement:
        case Apply(result, operation, arguments):
            _in_scope(arguments, scope)
            types = tuple(v.type for v in arguments)
            _same_type(operation.type(_Verifying(facts, types), *types), result.type, facts)
            scope.add(result)
        case Call(result, callee, dimensions, arguments):
            given = [v for tree in arguments for v in leaves(tree)]
            _in_scope(given, scope)
            replacement = dict(zip(callee.dimensions, dimensions, strict=True))
            for value, parameter in zip(given, callee.inputs, strict=True):
                _same_type(value.type, substitute(parameter.type, replacement), facts)
            for claim in callee.requires:
                _prove(substitute_proposition(claim, replacement), facts)
            _same_type(tree_type(result), substitute(callee.result_type, replacement), facts)
            scope.update(leaves(result))
        case Check(proposition):
            return facts.assume(proposition)
    return facts


def _in_scope(values: tuple[Value, ...] | list[Value], scope: set[Value]) -> None:
    for value in values:
        if value not in scope:
            raise InvalidCore(f"{value.name} is used before it is made")


def _prove(goal: Proposition, facts: Facts) -> None:
    if not settle(goal, facts).status.proved:
        raise InvalidCore(f"{goal} is not proved")


def _same_type(got: Type, wanted: Type, facts: Facts) -> None:
    match got, wanted:
        case Tensor(dtype, shape), Tensor(other_dtype, sizes) if dtype is other_dtype and len(shape) == len(sizes):
            for left, right in zip(shape, sizes, strict=True):
                _prove(equal(left, right), facts)
        case Tuple(items), Tuple(others) if len(items) == len(others):
            for item, other in zip(items, others, strict=True):
                _same_type(item, other, facts)
        case _:
            raise InvalidCore(f"{got} is not {wanted}")


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

    def require(self, goal: Proposition, why: str) -> None:
        _prove(goal, self.facts)

    def regroups(self, source: Shape, target: Shape) -> None:
        if not isinstance(regroup(source, target, self.facts), tuple):
            raise InvalidCore("reshape does not regroup")

    def refuse(self, message: str, *, operand: int | None = None, help: str | None = None) -> NoReturn:
        raise InvalidCore(message)
