"""Calls of functions: dimensions inferred from the arguments or given, obligations of the callee met."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from kina.core.ir import Call, Function, Tree, tree_type
from kina.diagnostics import form_errors, shape_errors
from kina.dims.dim import Dim, Variable, variable
from kina.dims.proposition import Proposition, variables
from kina.dims.proposition import substitute as substitute_proposition
from kina.dims.solve import solve_linear
from kina.elaborate.context import Context
from kina.elaborate.dimensions import read_size
from kina.elaborate.matching import conform_types
from kina.elaborate.obligations import oblige
from kina.elaborate.suggestions import call_advice
from kina.elaborate.trees import new_tree
from kina.source import Span
from kina.syntax import ast
from kina.types import Tensor, Tuple, Type, substitute, tensors

Infer = Callable[..., Tree]


def call_function(
    context: Context, e: ast.Expr, callee_name: str, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
    infer: Infer, expected: Type | None, name: str | None,
) -> Tree:  # fmt: skip
    """`f[dimensions] arguments`: a core call with every dimension explicit."""
    from kina.elaborate.functions import function_named

    callee = function_named(context, callee_name, e.span)
    _count(context, e, callee, arguments)
    given = _given_dimensions(context, e.span, callee, brackets)
    inference = _Inference(dict(given))
    trees: list[Tree] = []
    for parameter, argument in zip(callee.parameters, arguments, strict=True):
        wanted = tree_type(parameter.value)
        tree = infer(context, argument, substitute(wanted, inference.known))
        if not _same_form(wanted, tree_type(tree)):
            what = f"the argument `{parameter.name}` of {callee_name}"
            conform_types(context, tree_type(tree), substitute(wanted, inference.known), argument.span, what, None)
        inference.bind(wanted, tree_type(tree), parameter.name)
        trees.append(tree)
    if context.module.strict and callee.dimensions and not brackets:
        instead = f"{callee_name}[{', '.join(callee.dimensions)}] with the sizes meant"
        raise context.report(form_errors.sugar(e.span, "leaving out dimension arguments", instead))
    dimensions = _solved(context, e.span, callee, inference)
    for parameter, argument, tree in zip(callee.parameters, arguments, trees, strict=True):
        wanted = substitute(tree_type(parameter.value), dimensions)
        what = f"the argument `{parameter.name}` of {callee_name}"
        origins = inference.origins(callee_name, dimensions, wanted)
        conform_types(context, tree_type(tree), wanted, argument.span, what, None, origins)
    for claim in callee.requires:
        goal = substitute_proposition(claim, dimensions)
        oblige(context, goal, e.span, f"{callee_name} requires {claim}{_given(claim, dimensions)}")
    return _emit(context, e.span, callee, dimensions, trees, name)


def _same_form(wanted: Type, got: Type) -> bool:
    """Whether two types differ at most in sizes, so that sizes can be inferred from one for the other."""
    match wanted, got:
        case Tensor(), Tensor():
            return wanted.dtype is got.dtype and wanted.rank == got.rank
        case Tuple(items), Tuple(others):
            return len(items) == len(others) and all(map(_same_form, items, others))
    return False


def _given(claim: Proposition, dimensions: dict[str, Dim]) -> str:
    """`, and N is 2 * M here`: what the dimensions of a callee's claim are in this call."""
    known = [f"{name} is {dimensions[name]}" for name in sorted(variables(claim)) if str(dimensions[name]) != name]
    return f", and {', '.join(known)} here" if known else ""


def _emit(
    context: Context, span: Span, callee: Function, dimensions: dict[str, Dim], trees: list[Tree], name: str | None
) -> Tree:
    result = new_tree(context, substitute(callee.result_type, dimensions), name)
    ordered = tuple(dimensions[d] for d in callee.dimensions)
    context.statements.append(Call(result, callee, ordered, tuple(trees), (), span))
    return result


def _count(context: Context, e: ast.Expr, callee: Function, arguments: tuple[ast.Expr, ...]) -> None:
    names = [p.name for p in callee.parameters]
    if len(arguments) == len(names):
        return
    name = Span(e.span.source, e.span.start, e.span.start + len(callee.name))
    help_ = call_advice(e, name, arguments, missing=len(arguments) < len(names))
    if len(arguments) < len(names) and arguments:
        raise context.report(form_errors.partial_application(e.span, callee.name, names[len(arguments) :], help_))
    usage = f"{callee.name} {' '.join(names)}"
    raise context.report(form_errors.wrong_argument_count(e.span, callee.name, names, len(arguments), usage, help_))


def _given_dimensions(context: Context, span: Span, callee: Function, brackets: tuple[ast.Expr, ...]) -> dict[str, Dim]:
    if len(brackets) > len(callee.dimensions):
        raise context.report(form_errors.too_many_dimensions(span, callee.name, callee.dimensions, len(brackets)))
    for item in brackets:
        if isinstance(item, ast.NamedItem):
            order = f"{callee.name}[{', '.join(callee.dimensions)}]"
            raise context.report(form_errors.not_a_dimension(item.span, f"dimensions are given in order: {order}"))
    return {n: read_size(context, item) for n, item in zip(callee.dimensions, brackets, strict=False)}


@dataclass(slots=True)
class _Inference:
    """What the arguments say of a callee's dimensions: bindings, and equations that wait for them."""

    known: dict[str, Dim]
    sources: dict[str, str] = field(default_factory=dict)
    waiting: list[tuple[Dim, Dim]] = field(default_factory=list)

    def bind(self, wanted: Type, got: Type, parameter: str) -> None:
        """Bare variables bind to the sizes in their places; compound sizes wait. Mismatches are found later."""
        match wanted, got:
            case Tensor(shape=shape), Tensor(shape=sizes) if len(shape) == len(sizes):
                for pattern, size in zip(shape, sizes, strict=True):
                    self._bind_size(pattern, size, parameter)
            case Tuple(items), Tuple(others) if len(items) == len(others):
                for item, other in zip(items, others, strict=True):
                    self.bind(item, other, parameter)

    def _bind_size(self, pattern: Dim, size: Dim, parameter: str) -> None:
        match pattern.terms:
            case (((Variable(name),), 1),):
                if name not in self.known:
                    self.known[name] = size
                    self.sources[name] = parameter
            case _:
                self.waiting.append((pattern, size))

    def origins(self, callee: str, dimensions: dict[str, Dim], wanted: Type) -> tuple[str, ...]:
        """Where the dimensions of a wanted type came from, for the error."""
        used = {v for t in tensors(wanted) for d in t.shape for v in d.variables}
        return tuple(
            f"{name} of {callee} is {dimensions[name]} here, as the argument `{source}` says"
            for name, source in self.sources.items()
            if dimensions[name].variables & used
        )


def _solved(context: Context, span: Span, callee: Function, inference: _Inference) -> dict[str, Dim]:
    """All dimensions of the callee. Waiting equations with one unknown are solved, in any order.

    Unknowns are renamed while they are solved for, as the caller may have dimensions of the same names.
    """
    known = inference.known
    unknowns = {n: variable(f"?{n}") for n in callee.dimensions}
    progress = True
    while progress:
        progress = False
        for pattern, size in inference.waiting:
            missing = [n for n in callee.dimensions if n not in known and n in pattern.variables]
            if len(missing) != 1:
                continue
            solved = solve_linear(pattern.substitute({**unknowns, **known}), size, f"?{missing[0]}")
            if solved is None:
                continue
            known[missing[0]], conditions = solved
            for condition in conditions:
                oblige(context, condition, span, f"{missing[0]} of {callee.name} is inferred from {pattern} = {size}")
            progress = True
    missing = [n for n in callee.dimensions if n not in known]
    if missing:
        raise context.report(shape_errors.cannot_infer(span, callee.name, missing, callee.dimensions))
    return {n: known[n] for n in callee.dimensions}
