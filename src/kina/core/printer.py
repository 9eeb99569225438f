"""Core as Kina: what it prints checks again under `--strict` and gives the same core."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from kina.core.ir import Apply, Call, Check, Function, Statement, Tree, Value, leaves, tree_type
from kina.core.ir import Parameter as CoreParameter
from kina.ops import all_operations
from kina.ops.base import Kind, Operation, Parameter
from kina.ops.creation import Constant
from kina.ops.elementwise import OPERATORS
from kina.types import DType, shape_text

_SYMBOLS: Mapping[str, str] = {name: symbol for symbol, name in OPERATORS.items() if symbol != "="} | {"neg": "-"}


def print_program(function: Function) -> str:
    """A function after everything that it calls, each once."""
    ordered: dict[str, Function] = {}
    _collect(function, ordered)
    functions = ordered.values()
    names = _names(functions)
    return "\n\n".join(_function(f, names) for f in functions) + "\n"


def print_function(function: Function) -> str:
    """One function as a Kina declaration, without a line break at its end."""
    return _function(function, _names((function,)))


def _collect(function: Function, ordered: dict[str, Function]) -> None:
    for callee in _callees(function):
        if callee.name not in ordered:
            _collect(callee, ordered)
    ordered.setdefault(function.name, function)


def _callees(function: Function) -> Iterator[Function]:
    return (s.function for s in function.statements if isinstance(s, Call))


Named = Function | CoreParameter | Value
Names = Mapping[Named, str]
"""How functions, parameters and values are called in print."""


def _names(functions: Iterable[Function]) -> Names:
    """A name that an operation has, or a value's name that a function has, gets primes: core may use both."""
    functions = [*functions, *(callee for f in functions for callee in _callees(f))]
    taken = {entry.name for entry in all_operations()}
    names: dict[Named, str] = {f: _apart(f.name, taken, set()) for f in functions}
    taken |= set(names.values())
    for function in functions:
        made = [v for s in function.statements for v in _made(s)]
        used = {p.name for p in function.parameters} | {v.name for v in made}
        for p in function.parameters:
            names[p] = _apart(p.name, taken, used)
            names |= {v: names[p] + v.name.removeprefix(p.name) for v in leaves(p.value)}
        names |= {v: _apart(v.name, taken, used) for v in made}
    return names


def _apart(name: str, taken: AbstractSet[str], used: AbstractSet[str]) -> str:
    """The name, with primes until it is not taken; a name with primes is not one that is used either."""
    chosen = name
    while chosen in taken or (chosen != name and chosen in used):
        chosen += "'"
    return chosen


def _made(statement: Statement) -> Iterator[Value]:
    return iter(()) if isinstance(statement, Check) else leaves(statement.result)


def _function(function: Function, names: Names) -> str:
    dimensions = f" [{', '.join(function.dimensions)}]" if function.dimensions else ""
    lines = [f"let {names[function]}{dimensions}", *(f"    requires ({p})" for p in function.requires)]
    lines += [f"    ({names[p]} : {tree_type(p.value)})" for p in function.parameters]
    lines.append(f"    : {function.result_type} =")
    lines += [f"  {_statement(s, names)} in" for s in function.statements]
    lines.append(f"  {tree_text(function.result, names)}")
    return "\n".join(lines)


def _statement(statement: Statement, names: Names) -> str:
    match statement:
        case Apply(result, operation, arguments):
            application = _application(operation, [names[v] for v in arguments])
            return f"let {names[result]} : {result.type} = {application}"
        case Call(result, function, dimensions, arguments):
            called = names[function] + (shape_text(dimensions) if dimensions else "")
            given = " ".join([called, *(tree_text(a, names) for a in arguments)])
            return f"let {tree_text(result, names)} : {tree_type(result)} = {given}"
        case Check(proposition):
            return f"let assert ({proposition})"


def tree_text(tree: Tree, names: Names) -> str:
    """`x`, or `(x, (y, z))`."""
    if isinstance(tree, Value):
        return names[tree]
    return "(" + ", ".join(tree_text(item, names) for item in tree) + ")"


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
        case Kind.AXIS | Kind.NEW_AXIS | Kind.SIZE:
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
