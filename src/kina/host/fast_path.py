"""A plan compiled to Python: the quick way through the boundary for calls that are right and plain.

For one way of passing the arguments it gives a function of exactly those arguments that answers with the sizes and
the input arrays, or with None. None says nothing about what is wrong, or whether anything is: the boundary then
takes the call through the general way, which converts, or words the error. A tiny function costs about a microsecond
here, against some fifty there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kina.core.ir import Function, Stack, Struct, Tree, Value, parts
from kina.dims.dim import Atom, CeilDiv, Dim, FloorDiv, Maximum, Minimum, Modulo, Variable
from kina.dims.proposition import And, Comparison, Or, Proposition
from kina.host.sizes import Bind, Compare, Plan, Solve, make_plan
from kina.ops.base import Array

Match = Callable[..., tuple[dict[str, int], tuple[Array, ...]] | None]


def compile_match(function: Function, passed: Sequence[str]) -> Match | None:
    """The quick way for arguments passed in this order, each a parameter's or (for a size given by name) a dimension's.

    None where the arguments leave a size open. Generated code holds no text from the program: every name is a number.
    """
    parameters = {p.name: p.value for p in function.parameters}
    given = [name for name in passed if name not in parameters]
    plan = make_plan(function.dimensions, [v.type for v in function.inputs], given)
    if plan.missing:
        return None
    return _Writer(function, plan).write(passed, parameters)


@dataclass
class _Writer:
    function: Function
    plan: Plan
    lines: list[str] = field(default_factory=list)
    scope: dict[str, Any] = field(default_factory=lambda: {"ndarray": np.ndarray, "array": np.array})

    def write(self, passed: Sequence[str], parameters: Mapping[str, Tree]) -> Match:
        names = {d: f"d{k}" for k, d in enumerate(self.function.dimensions)}
        inputs = {v: f"x{k}" for k, v in enumerate(self.function.inputs)}
        head = [f"a{k}" for k in range(len(passed))]
        for argument, name in zip(head, passed, strict=True):
            if name in parameters:
                self._unpack(argument, parameters[name], inputs)
            else:
                self._line(f"if type({argument}) is not int or {argument} < 0: return None")
                self._line(f"{names[name]} = {argument}")
        for value, local in inputs.items():
            self._accept(value, local)
        self._steps(names)
        for value, local in inputs.items():
            self._in_range(value, local, names)
        for claim in self.function.requires:
            self._line(f"if not ({_claim(claim, names)}): return None")
        sizes = ", ".join(f"{d!r}: {local}" for d, local in names.items())
        self._line(f"return {{{sizes}}}, ({''.join(f'{local}, ' for local in inputs.values())})")
        return self._define(head)

    def _line(self, text: str) -> None:
        self.lines.append(text)

    def _unpack(self, source: str, tree: Tree, inputs: Mapping[Value, str]) -> None:
        """Takes a parameter's tuples apart, down to its tensors."""
        while isinstance(tree, Stack):
            tree = tree.item
        if isinstance(tree, Value):
            self._line(f"{inputs[tree]} = {source}")
            return
        given, keys = _container(tree)
        self._line(f"if type({source}) is not {given} or len({source}) != {len(keys)}: return None")
        for k, (key, item) in enumerate(zip(keys, parts(tree), strict=True)):
            self._line(f"{source}_{k} = {source}[{key!r}]")
            self._unpack(f"{source}_{k}", item, inputs)

    def _in_range(self, value: Value, x: str, names: Mapping[str, str]) -> None:
        """Indices have to lie in their range: the general way words the error."""
        if value.type.bound is not None:
            most = _dim(value.type.bound, names)
            self._line(f"if {x}.size and not (0 <= {x}.min() and {x}.max() < {most}): return None")

    def _accept(self, value: Value, x: str) -> None:
        """Arrays that can go in as they are; for scalar parameters also floats, and NumPy's scalars of their dtype."""
        dtype = self.scope[f"t_{x}"] = value.type.dtype.numpy
        usual = f"type({x}) is ndarray and {x}.dtype is t_{x}"
        if value.type.rank == 0:
            usual += f" and {x}.ndim == 0"
        if value.type.rank == 0:
            self.scope[f"n_{x}"] = dtype.type
            plain = f"type({x}) is n_{x}"
            if value.type.dtype.is_float:
                self.scope[f"m_{x}"] = _largest(dtype)
                plain += f" or type({x}) is float and -m_{x} <= {x} <= m_{x}"
            self._line(f"if {plain}: {x} = array({x}, t_{x})")
            self._line(f"elif not ({usual}): return None")
        else:
            self._line(f"if not ({usual}): return None")

    def _steps(self, names: Mapping[str, str]) -> None:
        for number, value in enumerate(self.function.inputs):
            if value.type.rank:  # a wrong rank is a ValueError here
                axes = "".join(f"s{number}_{axis}, " for axis in range(value.type.rank))
                self._line(f"{axes}= x{number}.shape")
            block = value.type.dtype.block
            if block is not None:
                self._line(f"s{number}_{value.type.rank - 1} *= {block}")
        for step in self.plan.steps:
            size = f"s{step.place.input}_{step.place.axis}"
            match step:
                case Bind(name):
                    self._line(f"{names[name]} = {size}")
                case Compare(dim):
                    self._line(f"if {size} != {_dim(dim, names)}: return None")
                case Solve(name, coefficient, rest):
                    d = names[name]
                    self._line(f"{d}, r = divmod({size} - ({_dim(rest, names)}), {_dim(coefficient, names)})")
                    self._line(f"if r or {d} < 0: return None")

    def _define(self, head: Sequence[str]) -> Match:
        body = "".join(f"        {line}\n" for line in self.lines)
        faults = "    except (ValueError, ZeroDivisionError, KeyError):\n        return None\n"
        source = f"def match({', '.join(head)}):\n    try:\n{body}{faults}"
        exec(source, self.scope)
        match: Match = self.scope["match"]
        return match


def _container(tree: Tree) -> tuple[str, Sequence[int | str]]:
    """What the quick way takes for a tuple or a record, and the keys of its parts."""
    match tree:
        case Struct(fields=fields):
            return "dict", [name for name, _ in fields]
        case _:
            return "tuple", range(len(parts(tree)))


def _largest(dtype: np.dtype[Any]) -> float:
    # For bfloat16, which NumPy's finfo does not know, one bit below the pattern of infinity.
    infinity = np.array(np.inf, dtype)
    return float(np.nextafter(infinity, np.array(0, dtype)))


def _dim(dim: Dim, names: Mapping[str, str]) -> str:
    """The expression in Python, in parentheses where it needs them."""
    return "(" + (" + ".join(_terms(dim, names)) or "0") + ")" if len(dim.terms) != 1 else next(_terms(dim, names))


def _terms(dim: Dim, names: Mapping[str, str]) -> Iterator[str]:
    for monomial, number in dim.terms:
        factors = [_atom(atom, names) for atom in monomial]
        yield " * ".join([f"({number})", *factors] if number != 1 or not factors else factors)


def _atom(atom: Atom, names: Mapping[str, str]) -> str:
    match atom:
        case Variable(name):
            return names[name]
        case FloorDiv(a, b):
            return f"(({_dim(a, names)}) // ({_dim(b, names)}))"
        case Modulo(a, b):
            return f"(({_dim(a, names)}) % ({_dim(b, names)}))"
        case CeilDiv(a, b):
            return f"(-(-({_dim(a, names)}) // ({_dim(b, names)})))"
        case Minimum(a, b):
            return f"min({_dim(a, names)}, {_dim(b, names)})"
        case Maximum(a, b):
            return f"max({_dim(a, names)}, {_dim(b, names)})"


_RELATIONS = {"=": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


def _claim(claim: Proposition, names: Mapping[str, str]) -> str:
    match claim:
        case Comparison(relation, left, right):
            return f"({_dim(left, names)}) {_RELATIONS[relation]} ({_dim(right, names)})"
        case And(items):
            return " and ".join(f"({_claim(p, names)})" for p in items) or "True"
        case Or(items):
            return " or ".join(f"({_claim(p, names)})" for p in items) or "False"
