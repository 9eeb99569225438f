"""Core as Kina: what it prints checks again under `--strict` and gives the same core."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kina.core.ir import Apply, Call, Check, Function, Statement, Tree, Value, tree_type
from kina.ops.base import Kind, Operation, Parameter
from kina.ops.creation import Constant
from kina.ops.elementwise import OPERATORS
from kina.types import DType, shape_text

_SYMBOLS: Mapping[str, str] = {name: symbol for symbol, name in OPERATORS.items() if symbol != "="} | {"neg": "-"}


def print_program(function: Function) -> str:
    """A function after everything that it calls, each once."""
    ordered: dict[str, Function] = {}
    _collect(function, ordered)
    return "\n\n".join(map(print_function, ordered.values())) + "\n"


def _collect(function: Function, ordered: dict[str, Function]) -> None:
    for statement in function.statements:
        if isinstance(statement, Call) and statement.function.name not in ordered:
            _collect(statement.function, ordered)
    ordered.setdefault(function.name, function)


def print_function(function: Function) -> str:
    """One function as a Kina declaration, without a line break at its end."""
    head = f"let {function.name}" + (f" [{', '.join(function.dimensions)}]" if function.dimensions else "")
    lines = [head, *(f"    requires ({p})" for p in function.requires)]
    lines += [f"    ({p.name} : {tree_type(p.value)})" for p in function.parameters]
    lines.append(f"    : {function.result_type} =")
    lines += [f"  {_statement(s)} in" for s in function.statements]
    lines.append(f"  {tree_text(function.result)}")
    return "\n".join(lines)


def _statement(statement: Statement) -> str:
    match statement:
        case Apply(result, operation, arguments):
            return f"let {result.name} : {result.type} = {_application(operation, [v.name for v in arguments])}"
        case Call(result, function, dimensions, arguments):
            called = function.name + (shape_text(dimensions) if dimensions else "")
            given = " ".join([called, *map(tree_text, arguments)])
            return f"let {tree_text(result)} : {tree_type(result)} = {given}"
        case Check(proposition):
            return f"let assert ({proposition})"


def tree_text(tree: Tree) -> str:
    """`x`, or `(x, (y, z))`."""
    if isinstance(tree, Value):
        return tree.name
    return "(" + ", ".join(map(tree_text, tree)) + ")"


def _application(operation: Operation, operands: list[str]) -> str:
    if isinstance(operation, Constant):
        return _constant(operation)
    symbol = _SYMBOLS.get(operation.name)
    if symbol is not None:
        return f"{operands[0]} {symbol} {operands[1]}" if len(operands) == 2 else f"{symbol}{operands[0]}"
    return " ".join([operation.name + _bracket(operation), *operands, *_trailing(operation)])


def _bracket(operation: Operation) -> str:
    items = [_attribute(p, v) for p, v in _static(operation) if p.bracket]
    return f"[{', '.join(items)}]" if items else ""


def _trailing(operation: Operation) -> Iterator[str]:
    for p, value in _static(operation):
        if not p.bracket:
            yield value.factor_text() if p.kind is Kind.SIZE else shape_text(value)


def _static(operation: Operation) -> Iterator[tuple[Parameter, Any]]:
    values = operation.arguments()
    declared = {p.name: p for p in operation.parameters()}
    for name, value in values.items():
        yield declared.get(name, Parameter(name, Kind.CHOICE, True)), value


def _attribute(p: Parameter, value: Any) -> str:
    match p.kind:
        case Kind.AXES:
            return f"axis={value[0]}" if len(value) == 1 else f"axes={list(value)}"
        case Kind.AXIS | Kind.NEW_AXIS:
            return f"{p.name}={value}"
        case _:
            return str(value)


def _constant(operation: Constant) -> str:
    texts = iter([_number(v, operation.dtype) for v in operation.values])

    def nested(sizes: tuple[int, ...]) -> str:
        if not sizes:
            return next(texts)
        return "[" + ", ".join(nested(sizes[1:]) for _ in range(sizes[0])) + "]"

    return nested(operation.sizes)


def _number(value: float | int | bool, dtype: DType) -> str:
    if dtype is DType.BOOL:
        return "true" if value else "false"
    return repr(float(value)) if dtype.is_float else str(value)
