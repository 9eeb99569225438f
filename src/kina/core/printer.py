"""Core as Kina: what it prints checks again under `--strict` and gives the same core."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import count
from typing import Any

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
    Stack,
    Statement,
    Tree,
    Value,
    While,
    blocks_of,
    made_by,
    parts,
    statements_within,
    tree_type,
)
from kina.core.ir import Parameter as CoreParameter
from kina.ops import all_operations
from kina.ops.base import Kind, Operation, Parameter
from kina.ops.creation import Constant
from kina.ops.elementwise import OPERATORS
from kina.types import DType, Exists, List, Record, Tuple, Type, effects_text, in_one, shape_text

_SYMBOLS: Mapping[str, str] = {name: symbol for symbol, name in OPERATORS.items() if symbol != "="} | {"neg": "-"}


def print_program(*functions: Function) -> str:
    """Functions after everything that they call, each once: a program by itself."""
    ordered: dict[Function, None] = {}
    for function in functions:
        _collect(function, ordered)
    names = _names(ordered)
    return "\n\n".join(_function(f, names) for f in ordered) + "\n"


def _collect(function: Function, ordered: dict[Function, None]) -> None:
    for callee in _callees(function):
        if callee not in ordered:
            _collect(callee, ordered)
    ordered.setdefault(function)


def _callees(function: Function) -> Iterator[Function]:
    return (s.function for s in statements_within(function.statements) if isinstance(s, Call))


# ---------------------------------------------------------------- names

_FORMS = {"to_dim", "check", "inf", "nan"}
"""What printed core has beside operations."""
Named = Function | CoreParameter | Value
Names = Mapping[Named, str]
"""How functions, parameters and values are called in print."""


def _names(functions: Iterable[Function]) -> Names:
    """A name that an operation has, or a value's name that a function has, gets primes: core may use both. So does the
    name of a second function, from another module."""
    functions = dict.fromkeys([*functions, *(callee for f in functions for callee in _callees(f))])
    taken = {entry.name for entry in all_operations()} | _FORMS
    names: dict[Named, str] = {}
    for f in functions:
        names[f] = _apart(f.name, taken, set())
        taken.add(names[f])
    for function in functions:
        dims = {d for s in statements_within(function.statements) for d in _dimensions_of(s)}
        called = _numbered(function, taken | dims)
        used = {p.name for p in function.parameters} | set(called.values())
        for p in function.parameters:
            names[p] = _apart(p.name, taken, used)
            names |= {v: names[p] + path for v, path in _paths(p.value)}
        names |= {v: _apart(name, taken | dims, used) for v, name in called.items()}
    return names


def _numbered(function: Function, taken: AbstractSet[str]) -> Mapping[Value, str]:
    """The values that a function makes, by name: those that the source did not name are numbered in the order in which
    they are made, whatever was made and dropped between them."""
    made = list(_made_within(function.statements))
    others = taken | {p.name for p in function.parameters} | {v.name for v in made if not _TEMPORARY.fullmatch(v.name)}
    numbers = (name for n in count(1) if (name := f"t{n}") not in others)
    return {v: next(numbers) if _TEMPORARY.fullmatch(v.name) else v.name for v in made}


_TEMPORARY = re.compile(r"t[1-9][0-9]*")


def _apart(name: str, taken: AbstractSet[str], used: AbstractSet[str]) -> str:
    """The name, with primes until it is not taken; a name with primes is not one that is used either."""
    chosen = name
    while chosen in taken or (chosen != name and chosen in used):
        chosen += "'"
    return chosen


def _made_within(statements: Iterable[Statement]) -> Iterator[Value]:
    for statement in statements:
        yield from statement.states if isinstance(statement, For | While) else ()
        for block in blocks_of(statement):
            yield from _made_within(block.statements)
        yield from made_by(statement)


def _dimensions_of(statement: Statement) -> tuple[str, ...]:
    match statement:
        case Open(dimension=name) | For(index=name):
            return (name,)
        case While(index=index, steps=steps):
            return (index, steps)
        case Call(opened=opened):
            return opened
        case _:
            return ()


def _paths(tree: Tree, path: str = "") -> Iterator[tuple[Value, str]]:
    """The tensors of a parameter, each with what takes it out: `.0.1`. Records print as tuples."""
    match tree:
        case Value():
            yield tree, path
        case Stack(item=item):
            yield from _paths(item, path)
        case _:
            for n, item in enumerate(parts(tree)):
                yield from _paths(item, f"{path}.{n}")


# ---------------------------------------------------------------- declarations


def _function(function: Function, names: Names) -> str:
    dimensions = f" [{', '.join(function.dimensions)}]" if function.dimensions else ""
    lines = [f"let {names[function]}{dimensions}", *(f"    requires ({p})" for p in function.requires)]
    lines += [f"    ({names[p]} : {_type(tree_type(p.value))})" for p in function.parameters]
    lines.append(f"    : {_type(function.result_type)}{effects_text(function.effects)} =")
    lines += _lines(function.statements, names, "  ")
    lines.append(f"  {tree_text(function.result, names)}")
    return "\n".join(lines)


def _type(type_: Type) -> str:
    """A type without records and lists: tuples of what they are made of."""
    match type_:
        case Tuple(items):
            return "(" + ", ".join(map(_type, items)) + ("," if len(items) == 1 else "") + ")"
        case Record(fields=fields):
            return _type(Tuple(tuple(item for _, item in fields)))
        case List():
            return _type(in_one(type_))
        case Exists(names, requires, body):
            return str(Exists(names, requires, body)).removesuffix(str(body)) + _type(body)
        case _:
            return str(type_)


# ---------------------------------------------------------------- statements


def _lines(statements: tuple[Statement, ...], names: Names, indent: str) -> Iterator[str]:
    for statement in statements:
        lines = list(_statement(statement, names))
        yield from (f"{indent}{line}" for line in lines[:-1])
        yield f"{indent}{lines[-1]} in"


def _statement(statement: Statement, names: Names) -> Iterator[str]:
    match statement:
        case Apply(result, operation, arguments):
            application = _application(operation, [names[v] for v in arguments])
            yield f"let {names[result]} : {result.type} = {application}"
        case Call(result, function, dimensions, arguments, opened):
            called = names[function] + (shape_text(dimensions) if dimensions else "")
            given = " ".join([called, *(tree_text(a, names) for a in arguments)])
            brings = f"[{', '.join(opened)}] " if opened else ""
            yield f"let {brings}{tree_text(result, names)} : {_type(tree_type(result))} = {given}"
        case Check(proposition):
            yield f"let assert ({proposition})"
        case Open(dimension, value, facts):
            yield f"let [{dimension}] = to_dim {names[value]}"
            yield from (f"in let assert ({fact})" for fact in facts)
        case Require(condition, message):
            yield f"let _ = check {names[condition]} {_quoted(message)}"
        case If(results, condition, then, otherwise):
            test = names[condition] if isinstance(condition, Value) else f"({condition})"
            yield f"let {_bound(results, names)} = if {test} then"
            yield from _indented(_block(then, (), names))
            yield "  else"
            yield from _indented(_block(otherwise, (), names))
        case For(results, index, bound, states, initial, body):
            head = f"let {_bound(results, names, len(states))} = for {index} < {bound}"
            yield head + (f" with {_states(states, initial, names)} do" if states else " yield")
            yield from _block(body, states, names)
        case While(results, steps, index, bound, states, initial, condition, body):
            limit = f" [{index} < {bound}]" if bound is not None else ""
            brings = f"[{steps}] " if bound is not None else ""
            yield f"let {brings}{_bound(results, names)} = while{limit} ("
            yield from _block(condition, (), names)
            yield f") with {_states(states, initial, names)} do"
            yield from _block(body, (), names)


def _block(block: Block, states: tuple[Value, ...], names: Names) -> Iterator[str]:
    """The lines of a block, indented. After the next states of a loop comes what the step yields."""
    yield from _lines(block.statements, names, "  ")
    if not states:
        yield f"  {_group(block.results, names)}"
        return
    yielded = block.results[len(states) :]
    extra = f" yield {_group(yielded, names)}" if yielded else ""
    yield f"  {_group(block.results[: len(states)], names)}{extra}"


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)


def _bound(results: tuple[Value, ...], names: Names, states: int = 0) -> str:
    """The pattern and the type for the results of a block or loop: `((a, b), c) : ((A, B), C)`."""
    first, rest = results[:states], results[states:]
    if first and rest:
        return f"({_group(first, names)}, {_group(rest, names)}) : ({_types(first)}, {_types(rest)})"
    return f"{_group(results, names)} : {_types(results)}"


def _types(values: tuple[Value, ...]) -> str:
    return str(values[0].type) if len(values) == 1 else _type(Tuple(tuple(v.type for v in values)))


def _group(values: tuple[Value, ...], names: Names) -> str:
    return names[values[0]] if len(values) == 1 else "(" + ", ".join(names[v] for v in values) + ")"


def _states(states: tuple[Value, ...], initial: tuple[Value, ...], names: Names) -> str:
    typed = [f"{names[v]} : {v.type}" for v in states]
    return f"{typed[0] if len(typed) == 1 else '(' + ', '.join(typed) + ')'} = {_group(initial, names)}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def tree_text(tree: Tree, names: Names) -> str:
    """`x`, or `(x, (y, z))`: records print as tuples."""
    match tree:
        case Value():
            return names[tree]
        case Stack(item=item):
            return tree_text(item, names)
        case _:
            items = [tree_text(item, names) for item in parts(tree)]
            return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _application(operation: Operation, operands: list[str]) -> str:
    if isinstance(operation, Constant):
        return _constant(operation)
    symbol = _SYMBOLS.get(operation.name)
    if symbol is not None:
        return f"{operands[0]} {symbol} {operands[1]}" if len(operands) == 2 else f"{symbol}{operands[0]}"
    return " ".join([operation.name + _bracket(operation), *operands, *_trailing(operation)])


def _bracket(operation: Operation) -> str:
    items = [_attribute(p, v) for p, v in _static(operation) if p.bracket and v != p.default]
    return f"[{', '.join(items)}]" if items else ""


def _trailing(operation: Operation) -> Iterator[str]:
    for p, value in _static(operation):
        if not p.bracket:
            yield value.factor_text() if p.kind in (Kind.SIZE, Kind.DIM) else shape_text(value)


def _static(operation: Operation) -> Iterator[tuple[Parameter, Any]]:
    values = operation.arguments()
    declared = {p.name: p for p in operation.parameters()}
    for name, value in values.items():
        yield declared.get(name, Parameter(name, Kind.CHOICE, True)), value


def _attribute(p: Parameter, value: Any) -> str:
    match p.kind:
        case Kind.AXES:
            return f"axis={value[0]}" if len(value) == 1 else f"axes={list(value)}"
        case Kind.AXIS | Kind.NEW_AXIS | Kind.SIZE | Kind.DIM:
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
    return repr(float(value)) if dtype.is_float else str(value)  # `inf`, `-inf` and `nan` are Kina too
