"""Arguments laid beside parameters: a callee's dimensions inferred, its types and `requires` obliged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kina.core.ir import Tree, tree_type
from kina.diagnostics import shape_errors
from kina.diagnostics.diagnostic import Help
from kina.dims.dim import Dim, Variable, variable
from kina.dims.proposition import Proposition, variables
from kina.dims.proposition import substitute as substitute_proposition
from kina.dims.solve import solve_linear
from kina.elaborate.closures import FunctionType, expect_function, try_function
from kina.elaborate.context import Context, FunctionValue, Meaning
from kina.elaborate.dispatch import value
from kina.elaborate.guesses import exchanged, last_axes_exchanged
from kina.elaborate.matching import conform_types
from kina.elaborate.obligations import oblige
from kina.source import Span
from kina.syntax import ast
from kina.types import Arrow, List, Record, Tensor, Tuple, Type, sizes, substitute


@dataclass(frozen=True, slots=True)
class Interface:
    """What a caller sees of a function, whether it is called in core or inlined."""

    name: str
    dimensions: tuple[str, ...]
    requires: tuple[Proposition, ...]
    parameters: tuple[tuple[str, Type], ...]


def match_arguments(
    context: Context, e: ast.Expr, interface: Interface, given: Mapping[str, Dim], arguments: Sequence[ast.Expr],
    known: Mapping[int, Meaning],
) -> tuple[dict[str, Dim], list[Meaning]]:  # fmt: skip
    """The callee's dimensions, and the arguments' values, which then have the parameters' types.

    `given` are dimensions written in the bracket, `known` are arguments that were looked at before.
    """
    inference = _Inference(interface, dict(given))
    found: dict[int, Meaning] = {}
    results: dict[int, Type] = {}
    for n in sorted(range(len(arguments)), key=lambda n: isinstance(interface.parameters[n][1], Arrow)):
        parameter, wanted = interface.parameters[n]
        if isinstance(wanted, Arrow):
            function = _function(context, arguments[n], inference.so_far(wanted), known.get(n))
            results[n] = try_function(context, function, _ready(context, e, inference, wanted), arguments[n].span)
            inference.bind(FunctionType.of(wanted).result, results[n], parameter)
            found[n] = function
        else:
            tree = _tree(context, arguments[n], inference.so_far(wanted), known.get(n))
            what = f"the argument `{parameter}` of {interface.name}"
            if not same_form(wanted, tree_type(tree)):
                hint = inference.so_far(wanted)
                conform_types(
                    context, tree_type(tree), hint, arguments[n].span, what, None, help=_rearranged(arguments, n)
                )
            inference.bind(wanted, tree_type(tree), parameter)
            found[n] = tree
    dimensions = inference.solved(context, e.span)
    for n, argument in enumerate(arguments):
        parameter, wanted = interface.parameters[n]
        wanted = substitute(wanted, dimensions)
        got = results[n] if n in results else tree_type(found[n])  # type: ignore[arg-type]
        what = f"the argument `{parameter}` of {interface.name}"
        if isinstance(wanted, Arrow):
            wanted, what = FunctionType.of(wanted).result, f"what {what} gives"
        origins = inference.origins(dimensions, wanted)
        rank = got.rank if isinstance(got, Tensor) else 0
        help_ = (*_rearranged(arguments, n), *last_axes_exchanged(argument.span, rank))
        conform_types(context, got, wanted, argument.span, what, None, origins, help_)
    for claim in interface.requires:
        goal = substitute_proposition(claim, dimensions)
        oblige(context, goal, e.span, f"{interface.name} requires {claim}{_given(claim, dimensions)}")
    return dimensions, [found[n] for n in range(len(arguments))]


def _rearranged(arguments: Sequence[ast.Expr], n: int) -> tuple[Help, ...]:
    """Another argument may have been meant for this place."""
    spans = [argument.span for argument in arguments]
    others = [m for m in range(len(spans)) if m != n and spans[m].text != spans[n].text]
    message = "exchange the arguments {} and {}"
    return tuple(exchanged(spans[n], spans[m], message.format(*sorted((n + 1, m + 1)))) for m in others)


def _tree(context: Context, argument: ast.Expr, hint: Type, known: Meaning | None) -> Tree:
    if known is None:
        return value(context, argument, hint)
    return known  # type: ignore[return-value]


def _function(context: Context, argument: ast.Expr, hint: Type, known: Meaning | None) -> FunctionValue:
    return expect_function(context, argument, hint, known)


def _ready(context: Context, e: ast.Expr, inference: _Inference, wanted: Arrow) -> Arrow:
    """A function parameter's type, all of whose own parameters have known sizes by now."""
    inference.solve(context, e.span)
    inner = FunctionType.of(wanted)
    needed = {v for type_ in inner.parameters for size in sizes(type_) for v in size.variables}
    missing = [n for n in inference.interface.dimensions if n in needed and n not in inference.known]
    if missing:
        interface = inference.interface
        raise context.report(shape_errors.cannot_infer(e.span, interface.name, missing, interface.dimensions))
    return inference.so_far(wanted)  # type: ignore[return-value]


def same_form(wanted: Type, got: Type) -> bool:
    """Whether two types differ at most in sizes, so that sizes can be inferred from one for the other."""
    match wanted, got:
        case Tensor(), Tensor():
            return wanted.dtype is got.dtype and wanted.rank == got.rank
        case Tuple(items), Tuple(others):
            return len(items) == len(others) and all(map(same_form, items, others))
        case Record(name, _, fields), Record(other, _, other_fields):
            return name == other and len(fields) == len(other_fields)
        case List(_, item), List(_, inner):
            return same_form(item, inner)
    return False


def _given(claim: Proposition, dimensions: Mapping[str, Dim]) -> str:
    """`, and N is 2 * M here`: what the dimensions of a callee's claim are in this call."""
    names = [name for name in sorted(variables(claim)) if name in dimensions and str(dimensions[name]) != name]
    return f", and {', '.join(f'{name} is {dimensions[name]}' for name in names)} here" if names else ""


@dataclass(slots=True)
class _Inference:
    """What the arguments say of a callee's dimensions: bindings, and equations that wait for them."""

    interface: Interface
    known: dict[str, Dim]
    sources: dict[str, str] = field(default_factory=dict)
    waiting: list[tuple[Dim, Dim]] = field(default_factory=list)

    def so_far(self, wanted: Type) -> Type:
        """A parameter's type with what is known put in; open sizes are called `?N`, which no program can mean."""
        still = {n: variable(f"?{n}") for n in self.interface.dimensions if n not in self.known}
        return substitute(wanted, {**still, **self.known})

    def bind(self, wanted: Type, got: Type, parameter: str) -> None:
        """Bare variables bind to the sizes in their places; compound sizes wait. Mismatches are found later."""
        match wanted, got:
            case Tensor(shape=shape), Tensor(shape=actual) if len(shape) == len(actual):
                for pattern, size in zip(shape, actual, strict=True):
                    self._bind_size(pattern, size, parameter)
                if wanted.bound is not None and got.bound is not None:
                    self._bind_size(wanted.bound, got.bound, parameter, bound=True)
            case Tuple(items), Tuple(others) if len(items) == len(others):
                for item, other in zip(items, others, strict=True):
                    self.bind(item, other, parameter)
            case Record(fields=fields), Record(fields=other_fields) if len(fields) == len(other_fields):
                for argument, given in zip(wanted.arguments, got.arguments, strict=False):
                    if isinstance(argument, Dim) and isinstance(given, Dim):
                        self._bind_size(argument, given, parameter)
                for (_, item), (_, other) in zip(fields, other_fields, strict=True):
                    self.bind(item, other, parameter)
            case List(size, item), List(actual_size, other):
                self._bind_size(size, actual_size, parameter)
                self.bind(item, other, parameter)

    def _bind_size(self, pattern: Dim, size: Dim, parameter: str, *, bound: bool = False) -> None:
        match pattern.terms:
            case (((Variable(name),), 1),) if name in self.interface.dimensions:
                if name not in self.known:
                    self.known[name] = size
                    self.sources[name] = parameter
            case _ if not bound:
                self.waiting.append((pattern, size))

    def origins(self, dimensions: Mapping[str, Dim], wanted: Type) -> tuple[str, ...]:
        """Where the dimensions of a wanted type came from, for the error."""
        used = {v for size in sizes(wanted) for v in size.variables}
        return tuple(
            f"{name} of {self.interface.name} is {dimensions[name]} here, as the argument `{source}` says"
            for name, source in self.sources.items()
            if dimensions[name].variables & used and str(dimensions[name]) != name
        )

    def solve(self, context: Context, span: Span) -> None:
        """Waiting equations with one unknown are solved, in any order.

        Unknowns are renamed while they are solved for, as the caller may have dimensions of the same names.
        """
        names = self.interface.dimensions
        unknowns = {n: variable(f"?{n}") for n in names}
        progress = True
        while progress:
            progress = False
            for pattern, size in self.waiting:
                missing = [n for n in names if n not in self.known and n in pattern.variables]
                if len(missing) != 1:
                    continue
                (name,) = missing
                solved = solve_linear(pattern.substitute({**unknowns, **self.known}), size, f"?{name}")
                if solved is None:
                    continue
                self.known[name], conditions = solved
                why = f"{name} of {self.interface.name} is inferred from {pattern} = {size}"
                for condition in conditions:
                    oblige(context, condition, span, why)
                progress = True

    def solved(self, context: Context, span: Span) -> dict[str, Dim]:
        """All dimensions of the callee."""
        self.solve(context, span)
        interface = self.interface
        missing = [n for n in interface.dimensions if n not in self.known]
        if missing:
            raise context.report(shape_errors.cannot_infer(span, interface.name, missing, interface.dimensions))
        return {n: self.known[n] for n in interface.dimensions}
