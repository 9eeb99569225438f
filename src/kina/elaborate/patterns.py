"""Axis patterns read, and `rearrange`: sugar for `unflatten`, `transpose`, `flatten_pair` and the like."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kina.core.ir import Apply, Value
from kina.diagnostics import Diagnostic, form_errors, pattern_errors
from kina.dims.dim import Dim, constant, floor_div, modulo, product
from kina.dims.division import divide
from kina.dims.proposition import Comparison, equal
from kina.elaborate.closures import partial
from kina.elaborate.context import Context, FunctionValue, Meaning
from kina.elaborate.dimensions import is_natural, read_size
from kina.elaborate.dispatch import Builtin, builtin, tensor
from kina.elaborate.obligations import oblige
from kina.elaborate.operations import operate
from kina.source import Span
from kina.syntax import ast
from kina.types import Type

_ZERO, _ONE = constant(0), constant(1)
_WORD = re.compile(r"\.\.\.|[^\s()]+")


@dataclass(frozen=True, slots=True)
class Letter:
    """The name of an axis, or `...`, at its place in the pattern."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class Group:
    """What one axis of a tensor is made of: one letter, several in parentheses, or none where its size is 1."""

    letters: tuple[Letter, ...]
    span: Span


def read_axis(context: Context, shown: str, axis: ast.PatternAxis) -> Group:
    """An axis of a pattern. `1` and `()` are no letters."""
    span = axis.span
    if not axis.group:
        (name,) = axis.names
        places = [span]
    else:
        places = [Span(span.source, span.start + m.start(), span.start + m.end()) for m in _WORD.finditer(span.text)]
    letters = []
    for name, place in zip(axis.names, places, strict=True):
        if isinstance(name, str):
            letters.append(Letter(name, place))
        elif name != 1 or shown == "einsum":
            raise context.report(pattern_errors.number_in_pattern(place, shown, str(name)))
    return Group(tuple(letters), span)


def side_span(pattern: ast.AxisPattern, axes: Sequence[ast.PatternAxis]) -> Span:
    """Where a list of axes stands; the whole pattern where it is empty."""
    return Span(pattern.span.source, axes[0].span.start, axes[-1].span.end) if axes else pattern.span


def read_bracket(
    context: Context, e: ast.Expr, shown: str, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...]
) -> tuple[ast.AxisPattern, tuple[ast.Expr, ...]]:
    """The pattern, and what else the bracket holds. There have to be as many arguments as the pattern describes."""
    if not brackets or not isinstance(brackets[0], ast.AxisPattern):
        raise context.report(pattern_errors.pattern_wanted(e.span, shown, "a pattern of axes is wanted in a bracket"))
    pattern, others = brackets[0], brackets[1:]
    if len(pattern.inputs) != len(arguments):
        where = Span(e.span.source, arguments[0].span.start, arguments[-1].span.end) if arguments else e.span
        described, given = len(pattern.inputs), len(arguments)
        at = pattern.span
        raise context.report(pattern_errors.wrong_number_of_tensors(at, shown, described, given, where))
    if context.home.strict:
        instead = {"einsum": "transpose, matmul and reduce", "rearrange": "unflatten, transpose and flatten_pair"}
        raise context.report(form_errors.sugar(e.span, f"`{shown}`", instead[shown]))
    return pattern, others


def once(context: Context, shown: str, letters: Iterable[Letter], side: str) -> dict[str, Letter]:
    """The letters by name; each may stand once."""
    found: dict[str, Letter] = {}
    for letter in letters:
        first = found.setdefault(letter.name, letter)
        if first is not letter:
            raise context.report(pattern_errors.named_twice(letter.span, shown, letter.name, first.span, side))
    return found


def named(context: Context, value: Value, name: str | None) -> Value:
    """The value that was just made, called `name`."""
    last = context.statements[-1] if context.statements else None
    if name is None or not isinstance(last, Apply) or last.result is not value:
        return value
    renamed = Value(context.fresh(name), value.type)
    context.statements[-1] = replace(last, result=renamed)
    return renamed


@dataclass(frozen=True, slots=True)
class Steps:
    """Core operations that stand for one form of the surface, all at its place."""

    context: Context
    shown: str
    span: Span

    def apply(self, operation: str, x: Value, at: Span, **static: Any) -> Value:
        return operate(self.context, operation, static, self.shown, self.span, (x,), (at,), None)

    def transpose(self, x: Value, at: Span, order: Sequence[int]) -> Value:
        return x if list(order) == sorted(order) else self.apply("transpose", x, at, order=tuple(order))

    def squeeze(self, x: Value, at: Span, axis: int) -> Value:
        return self.apply("squeeze", x, at, axis=axis)

    def expand(self, x: Value, at: Span, axis: int) -> Value:
        return self.apply("expand_dims", x, at, axis=axis)

    def merge(self, x: Value, at: Span, axis: int, count: int) -> Value:
        """So many neighbouring axes as one."""
        if count == 0:
            return self.expand(x, at, axis)
        for _ in range(count - 1):
            x = self.apply("flatten_pair", x, at, axis=axis)
        return x


@dataclass(frozen=True, slots=True)
class _Pattern:
    """`einsum` or `rearrange` with its pattern, as a function."""

    shown: str
    elaborate: Builtin

    def misuse(self, span: Span) -> Diagnostic:
        return form_errors.function_where_value(span, self.shown, ("x",))

    def describe(self) -> str:
        return f"`{self.shown}`"

    def apply(
        self, context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
        expected: Type | None, name: str | None,
    ) -> Meaning:  # fmt: skip
        return self.elaborate(context, e, brackets, arguments, expected, name)


def as_function(
    context: Context, shown: str, elaborate: Builtin, brackets: tuple[ast.Expr, ...]
) -> FunctionValue:
    """The form without arguments: `map rearrange[a b -> b a] xs`."""
    missing = ["x"]
    if brackets and isinstance(brackets[0], ast.AxisPattern):
        missing = [f"x{n}" for n in range(len(brackets[0].inputs))]
    return partial(context, _Pattern(shown, elaborate), shown, brackets, (), missing)


# ---------------------------------------------------------------- rearrange


@builtin("rearrange")
def _rearrange(
    context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
    expected: Type | None, name: str | None,
) -> Meaning:  # fmt: skip
    """`rearrange[b s (h d) -> b h s d, h=H] x`: axes split, exchanged and merged."""
    if not arguments:
        return as_function(context, "rearrange", _rearrange, brackets)
    pattern, items = read_bracket(context, e, "rearrange", brackets, arguments)
    x = tensor(context, arguments[0])
    work = _Rearrangement(Steps(context, "rearrange", e.span), pattern, arguments[0].span)
    return named(context, work.run(x, items), name)


@dataclass(frozen=True, slots=True)
class _Rearrangement:
    steps: Steps
    pattern: ast.AxisPattern
    at: Span

    def run(self, x: Value, items: tuple[ast.Expr, ...]) -> Value:
        context = self.steps.context
        before = [read_axis(context, "rearrange", axis) for axis in self.pattern.inputs[0]]
        after = [read_axis(context, "rearrange", axis) for axis in self.pattern.output]
        self._match(before, after)
        sizes = self._sizes(items, [letter.name for group in before for letter in group.letters])
        hidden = self._hidden(before, x)
        before = _shown(before, hidden)
        after = _shown(after, hidden)
        x = self._split(x, before, sizes)
        order = [letter.name for group in before for letter in group.letters]
        wanted = [letter.name for group in after for letter in group.letters]
        x = self.steps.transpose(x, self.at, [order.index(n) for n in wanted])
        for axis, group in enumerate(after):
            x = self.steps.merge(x, self.at, axis, len(group.letters))
        return x

    def _match(self, before: list[Group], after: list[Group]) -> None:
        """Each letter stands once on each side."""
        context = self.steps.context
        for group in before:
            for letter in group.letters:
                if letter.name == "..." and group.span != letter.span:
                    raise context.report(pattern_errors.dots_in_group(letter.span))
        left = once(context, "rearrange", (x for g in before for x in g.letters), "before the arrow")
        right = once(context, "rearrange", (x for g in after for x in g.letters), "after the arrow")
        for name, letter in right.items():
            if name not in left:
                unmatched = [n for n in left if n not in right]
                error = pattern_errors.only_in_result(letter.span, "rearrange", name, unmatched or left)
                raise context.report(error)
        for name, letter in left.items():
            if name not in right:
                raise context.report(pattern_errors.not_in_result(letter.span, "rearrange", name))

    def _sizes(self, items: tuple[ast.Expr, ...], known: list[str]) -> dict[str, Dim]:
        """The sizes that the bracket gives."""
        context = self.steps.context
        sizes: dict[str, Dim] = {}
        for item in items:
            if not isinstance(item, ast.NamedItem):
                why = "after the pattern come sizes of its axes"
                raise context.report(pattern_errors.pattern_wanted(item.span, "rearrange", why))
            if item.name not in known:
                named = [n for n in known if n != "..."]
                raise context.report(pattern_errors.size_of_unknown(item.span, item.name, named))
            if item.name in sizes:
                raise context.report(pattern_errors.size_given_twice(item.span, item.name))
            sizes[item.name] = read_size(context, item.value)
        return sizes

    def _hidden(self, before: list[Group], x: Value) -> int:
        """How many axes `...` stands for."""
        dots = any(letter.name == "..." for group in before for letter in group.letters)
        count = len(before) - dots
        if count > x.type.rank or (count < x.type.rank and not dots):
            at = side_span(self.pattern, self.pattern.inputs[0])
            error = pattern_errors.wrong_number_of_axes(at, "rearrange", count, dots, self.at, x.type.shape)
            raise self.steps.context.report(error)
        return x.type.rank - count

    def _split(self, x: Value, groups: list[Group], sizes: Mapping[str, Dim]) -> Value:
        """Each letter an axis of its own."""
        axis = 0
        for group in groups:
            size = x.type.shape[axis]
            if not group.letters:
                oblige(self.steps.context, equal(size, _ONE), group.span, "an axis written 1 has to have size 1")
                x = self.steps.squeeze(x, self.at, axis)
                continue
            parts = self._parts(group, size, sizes)
            if len(parts) > 1:
                x = self.steps.apply("unflatten", x, self.at, axis=axis, sizes=parts)
            axis += len(parts)
        return x

    def _parts(self, group: Group, size: Dim, sizes: Mapping[str, Dim]) -> tuple[Dim, ...]:
        """The sizes of a group's letters, of which the bracket gives all but one, or all."""
        context = self.steps.context
        unknown = [letter for letter in group.letters if letter.name not in sizes]
        known = product([sizes[letter.name] for letter in group.letters if letter.name in sizes])
        if not unknown:
            oblige(context, equal(known, size), group.span, f"{group.span.text} has the size {size}")
            return tuple(sizes[letter.name] for letter in group.letters)
        if len(unknown) > 1:
            names = [letter.name for letter in unknown]
            raise context.report(pattern_errors.open_group(group.span, group.span.text, names, size))
        what = f"{group.span.text} has the size {size}"
        rest = exact_quotient(context, size, known, group.span, what) if len(group.letters) > 1 else size
        return tuple(sizes.get(letter.name, rest) for letter in group.letters)


def exact_quotient(context: Context, size: Dim, known: Dim, span: Span, what: str) -> Dim:
    """`size / known`, which has to come out whole: as polynomials, or by what is known of the sizes."""
    if known.terms:
        whole, rest = divide(size, known)
        if rest is _ZERO and is_natural(whole):
            return whole
    remainder = modulo(size, known)
    if remainder.value != 0:
        oblige(context, equal(remainder, _ZERO), span, f"{what}, which has to be a multiple of {known}")
    oblige(context, Comparison(">", known, _ZERO), span, f"{size} is divided by it")
    return floor_div(size, known)


def _shown(groups: list[Group], hidden: int) -> list[Group]:
    """The groups with a letter for each axis that `...` stands for."""
    made: list[Group] = []
    for group in groups:
        if len(group.letters) == 1 and group.letters[0].name == "..." and group.span == group.letters[0].span:
            made += [Group((Letter(f"...{n}", group.span),), group.span) for n in range(hidden)]
            continue
        letters: list[Letter] = []
        for letter in group.letters:
            dots = letter.name == "..."
            letters += [Letter(f"...{n}", letter.span) for n in range(hidden)] if dots else [letter]
        made.append(Group(tuple(letters), group.span))
    return made

