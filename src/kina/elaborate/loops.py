"""Loops whose state's type may mention the step: checked once, by induction.

`init : T(0)`; assuming `i < N` and `s : T(i)`, `body : T(i + 1)`; so the loop has the type `T(N)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kina.core.ir import Block, For, Statement, Tree, Value, While, leaves, tree_type
from kina.diagnostics import effect_errors, form_errors
from kina.diagnostics.diagnostic import Edit, Help
from kina.dims.dim import Dim, constant, variable
from kina.dims.proposition import Comparison
from kina.elaborate.context import Context, Meaning, Package
from kina.elaborate.dimensions import read_size
from kina.elaborate.dispatch import check, elaborates, final, tensor, value
from kina.elaborate.guesses import call_of, guess
from kina.elaborate.keys import KEY, Keys, folded, next_key, number
from kina.elaborate.lets import through_lets
from kina.elaborate.matching import conform
from kina.elaborate.refs import Carried
from kina.elaborate.trees import confine, new_tree, stacked
from kina.elaborate.type_expressions import read_type
from kina.source import Span
from kina.syntax import ast
from kina.types import DType, Exists, Tensor, Tuple, Type, shape_text, substitute

_BOOL = Tensor(DType.BOOL, ())


@dataclass(frozen=True, slots=True)
class _State:
    """A state by name: its type over the loop's index, where that was declared, what it starts as."""

    name: str
    type: Type
    declared: ast.Expr | None
    initial: Tree
    place: Span
    first: Span | None = None
    """Where its first value stands, if its type was not declared."""

    def at(self, index: str, step: Dim) -> Type:
        return substitute(self.type, {index: step})


@elaborates(ast.For)
def _for(context: Context, e: ast.For, expected: Type | None, name: str | None) -> Meaning:
    bound = read_size(context, e.bound)
    mark = len(context.opened)
    index = context.fresh_dimension(e.index)
    states = _states(context, e.states, e.index, index, bound)
    refs = Carried.through(context, e.body, e.yielded)
    with context.repeated(index, e.span) as statements:
        trees = _enter(context, states, e.index, index, bound)
        refs.enter(context)
        after = [state.at(str(index), index + 1) for state in states]
        following, yielded = _step(context, e, states, after, index)
        results = [v for tree in following for v in leaves(tree)]
        stacks = leaves(yielded) if yielded is not None else ()
        body = Block(tuple(statements), (*results, *refs.following(context), *stacks))
    if yielded is not None and e.yielded is not None:
        confine(context, tree_type(yielded), mark, e.yielded.span, "what each step yields")
    alone = len(states) == 1 and yielded is None and not refs.cells
    last = [new_tree(context, s.at(str(index), bound), (name or s.name) if alone else None) for s in states]
    held = refs.leave(context, *last, yielded)
    stack = None if yielded is None else stacked(context, yielded, bound, None if states or refs.cells else name)
    made = [*(v for tree in last for v in leaves(tree)), *held]
    made += leaves(stack) if stack is not None else ()
    inner = (*(v for tree in trees for v in leaves(tree)), *refs.states)
    first = (*(v for state in states for v in leaves(state.initial)), *refs.initial)
    context.statements.append(For(tuple(made), str(index), bound, inner, first, body, e.span))
    final = last[0] if len(last) == 1 else tuple(last)
    if stack is None:
        return final
    return (final, stack) if states else stack


def _step(
    context: Context, e: ast.For, states: list[_State], after: list[Type], index: Dim
) -> tuple[list[Tree], Tree | None]:
    """The next states, and beside them what the step yields: it sees the names of the body's lets."""
    if e.body is None:
        return [], None if e.yielded is None else value(context, e.yielded)

    def beside(last: ast.Expr) -> tuple[list[Tree], Tree | None]:
        following = _next(context, last, states, after, index)
        return following, None if e.yielded is None else value(context, e.yielded)

    return through_lets(context, e.body, beside)


@elaborates(ast.While)
def _while(context: Context, e: ast.While, expected: Type | None, name: str | None) -> Meaning:
    bound = read_size(context, e.bound) if e.bound is not None else None
    if bound is None:
        context.perform("diverge", e.span, "a `while` without a bound")
    index = context.fresh_dimension(e.index or "n")
    states = _states(context, e.states, e.index, index, bound)
    refs = Carried.through(context, e.condition, e.body)
    key = _StepKey(context, e.span)
    with key.block(index if bound is not None else None) as statements:
        trees = _enter(context, states, e.index, index, bound)
        refs.enter(context)
        held = dict(context.cells)
        going = tensor(context, e.condition, _BOOL)
        conform(context, going, _BOOL, e.condition.span, "the condition of `while`", None)
        changed = next((cell for cell in held if context.cells[cell] is not held[cell]), None)
        if changed is not None:
            raise context.report(effect_errors.changed_by_condition(e.condition.span, changed.name))
        condition = Block(tuple(statements), (going,))
    inner = (*(v for tree in trees for v in leaves(tree)), *refs.states)
    with key.block(index if bound is not None else None) as statements:
        _enter(context, states, e.index, index, bound, trees)
        context.cells.update(held)
        after = [state.at(str(index), index + 1) for state in states]
        following = _next(context, e.body, states, after, index)
        key.finish()
        results = (*(v for tree in following for v in leaves(tree)), *refs.following(context))
        body = Block((*statements, *key.statements), (*results, *key.following))
    hidden = e.index or "n"
    (steps,) = context.measured_dimensions((hidden,))
    alone = len(states) == 1 and not refs.cells and not key.states
    last = [new_tree(context, s.at(str(index), steps), (name or s.name) if alone else None) for s in states]
    made = (*(v for tree in last for v in leaves(tree)), *refs.leave(context, *last, *key.states), *key.last)
    first = (*(v for state in states for v in leaves(state.initial)), *refs.initial, *key.initial)
    inner = (*inner, *key.states)
    context.statements.append(While(made, str(steps), str(index), bound, inner, first, condition, body, e.span))
    final = last[0] if len(last) == 1 else tuple(last)
    if bound is None:
        return final
    claim = Comparison("<=", steps, bound)
    context.assume(claim)
    types = [state.at(str(index), variable(hidden)) for state in states]
    promised = (Comparison("<=", variable(hidden), bound),)
    return Package(Exists((hidden,), promised, types[0] if len(types) == 1 else Tuple(tuple(types))), (steps,), final)


class _StepKey:
    """Where the steps of a `while` draw from: with a bound, from a key for each index; else a key is one more state."""

    def __init__(self, context: Context, span: Span) -> None:
        self._context, self._span = context, span
        self._before, self._outside = context.statements, context.keys
        self._keys = Keys(lambda: Value(context.fresh("key"), KEY), taken=1)
        self.initial: tuple[Value, ...] = ()
        self.states: tuple[Value, ...] = ()
        self.following: tuple[Value, ...] = ()
        self.statements: list[Statement] = []
        """At the end of a step: what makes the key of the next one."""

    @contextmanager
    def block(self, index: Dim | None) -> Iterator[list[Statement]]:
        """The block of the condition or of the body."""
        context = self._context
        if index is not None:
            with context.repeated(index, self._span) as statements:
                yield statements
            return
        with context.block() as statements:
            context.keys = self._keys
            try:
                yield statements
            finally:
                context.keys = self._outside

    @property
    def last(self) -> tuple[Value, ...]:
        """What the state is after the loop; nothing wants it."""
        return tuple(Value(self._context.fresh(None), KEY) for _ in self.states)

    def finish(self) -> None:
        """After both: the state, if there is one."""
        state, fresh, span = self._keys.value, self._context.fresh, self._span
        if state is None:
            return
        zero = number(self.statements, 0, fresh, span)
        self.following = (folded(self.statements, state, zero, fresh, span),)
        self.initial = (next_key(self._before, self._outside, fresh, span),)
        self.states = (state,)


# ---------------------------------------------------------------- states


def _states(
    context: Context, states: tuple[ast.State, ...], name: str | None, index: Dim, bound: Dim | None
) -> list[_State]:
    """The states' types, read where the index may be anything up to the bound, and their first values."""
    found = []
    for state in states:
        type_ = None
        if state.type is not None:
            with context.scope():
                _bind_index(context, name, index)
                if bound is not None:
                    context.assume(Comparison("<=", index, bound))
                type_ = read_type(context, state.type)
        if type_ is None:
            initial = value(context, state.initial)
            found.append(_State(state.name, tree_type(initial), None, initial, state.span, state.initial.span))
            continue
        if isinstance(type_, Exists):
            raise context.report(form_errors.unsupported(state.span, "a state of an existential type"))
        start = substitute(type_, {str(index): constant(0)})
        what = f"the state `{state.name}` at the start"
        origin = _how(state.name, type_, name, start, "at the start")
        declared = state.type.span if state.type is not None else None
        initial = check(context, state.initial, start, what, declared, state.name, origin)
        found.append(_State(state.name, type_, state.type, initial, state.span))
    return found


def _bind_index(context: Context, name: str | None, index: Dim) -> None:
    if name is not None:
        context.values.pop(name, None)
        context.indices.pop(name, None)
        context.dims[name] = index


def _enter(
    context: Context, states: list[_State], name: str | None, index: Dim, bound: Dim | None,
    trees: list[Tree] | None = None,
) -> list[Tree]:  # fmt: skip
    """Binds index and states for a block, with what is known in each step."""
    _bind_index(context, name, index)
    if bound is not None:
        context.assume(Comparison("<", index, bound))
        if name is not None:
            context.indices[name] = bound
    made = trees or [new_tree(context, state.type, state.name, parameter=False) for state in states]
    for state, tree in zip(states, made, strict=True):
        context.values[state.name] = tree
    return made


def _next(context: Context, e: ast.Expr, states: list[_State], after: list[Type], index: Dim) -> list[Tree]:
    """The next states: each of its type one step on."""
    single = len(states) == 1
    wanted = after[0] if single else Tuple(tuple(after))
    names = ", ".join(f"`{state.name}`" for state in states)
    what = f"the next state {names}" if single else f"the next states ({names})"
    origin = tuple(
        line
        for state, type_ in zip(states, after, strict=True)
        for line in _how(state.name, state.type, str(index), type_, "after it")
    )
    if single and states[0].declared is None:
        origin = (f"`{states[0].name}` has no declared type, so it keeps that of its first value",)
    declared = states[0].declared.span if single and states[0].declared is not None else None
    found = value(context, e, wanted)
    help_ = _grown(states[0], tree_type(found), index) if single else ()
    conform(context, found, wanted, final(e).span, what, declared, origin, help_)
    return [found] if single else list(found)  # type: ignore[arg-type]


def _grown(state: _State, after: Type, index: Dim) -> tuple[Help, ...]:
    """The type of a state that grows by the same in each step, where none was declared."""
    before = state.type
    if state.declared is not None or not isinstance(before, Tensor) or not isinstance(after, Tensor):
        return ()
    if before.rank == 0 and state.first is not None:
        whole = shape_text(after.shape)
        edit = Edit(state.first, call_of("broadcast", state.first, whole))
        return (guess(f"start from the same number in every place of {whole}", edit),)
    if after.rank != before.rank:
        return ()
    shape = tuple(b + (a - b) * index for a, b in zip(after.shape, before.shape, strict=True))
    at = Span(state.place.source, state.place.start + len(state.name), state.place.start + len(state.name))
    type_ = before.with_shape(shape)
    return (guess(f"say that it grows: {state.name} : {type_}", Edit(at, f" : {type_}")),)


def _how(name: str, type_: Type, index: str | None, there: Type, where: str) -> tuple[str, ...]:
    """How the type of a state came about, where it changes with the step."""
    if there == type_ or index is None:
        return ()
    return (f"`{name}` is {type_} in step {index}, and so {there} {where}",)
