"""Names with a form of their own: `to_dim`, `check`, and the maps and folds, which are loops."""

from __future__ import annotations

from kina.core.ir import Block, For, Require, Stack, Tree, Value, leaves, rename_tree, tree_type
from kina.diagnostics import form_errors
from kina.dims.dim import Dim, variable
from kina.dims.proposition import Comparison
from kina.elaborate.closures import as_argument, expect_function
from kina.elaborate.context import Context, FunctionValue, Meaning
from kina.elaborate.dispatch import as_value, builtin, exactly, infer, kind_of, tensor, value
from kina.elaborate.matching import conform, conform_types
from kina.elaborate.operations import operate
from kina.elaborate.packages import open_scalar
from kina.elaborate.refs import Carried
from kina.elaborate.trees import confine, new_tree, stacked
from kina.syntax import ast
from kina.types import Arrow, DType, Tensor, Type


@builtin("to_dim")
def _to_dim(
    context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
    expected: Type | None, name: str | None,
) -> Meaning:  # fmt: skip
    """A scalar as a dimension: `let [n] = to_dim k in`."""
    exactly(context, e, "to_dim", ("k",), brackets, arguments)
    wanted = Tensor(DType.I64, ())
    k = tensor(context, arguments[0], wanted)
    conform(context, k, wanted, arguments[0].span, "what becomes a dimension", None)
    return open_scalar(context, k, "n", (), (), e.span)


@builtin("check")
def _check(
    context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
    expected: Type | None, name: str | None,
) -> Meaning:  # fmt: skip
    """`check c "message"`: ends the program with the message unless c holds."""
    exactly(context, e, "check", ("condition", '"message"'), brackets, arguments)
    wanted = Tensor(DType.BOOL, ())
    condition = tensor(context, arguments[0], wanted)
    conform(context, condition, wanted, arguments[0].span, "what is checked", None)
    if not isinstance(arguments[1], ast.String):
        raise context.report(form_errors.message_wanted(arguments[1].span))
    context.perform("fail", e.span, "`check`")
    context.statements.append(Require(condition, arguments[1].value, e.span))
    return ()


# ---------------------------------------------------------------- maps and folds


def _length(context: Context, tree: Tree, span: ast.Expr, what: str) -> Dim:
    """Over how many items a loop over a list, or over a leading axis, runs."""
    if isinstance(tree, Stack):
        return tree.size
    if isinstance(tree, Value) and tree.type.rank:
        return tree.type.shape[0]
    shown = "a scalar" if isinstance(tree, Value) else kind_of(tree)
    raise context.report(form_errors.nothing_to_run_over(span.span, what, shown))


def _at(context: Context, tree: Tree, step: Dim, e: ast.Expr) -> Tree:
    """The item of a list, or of a leading axis, at a step."""

    def pick(v: Value) -> Value:
        static = {"axis": 0, "start": step, "stop": step + 1}
        one = operate(context, "slice", static, "slice", e.span, (v,), (e.span,), None)
        return operate(context, "squeeze", {"axis": 0}, "squeeze", e.span, (one,), (e.span,), None)

    return rename_tree(tree.item if isinstance(tree, Stack) else tree, pick)


def _sequences(context: Context, arguments: tuple[ast.Expr, ...], what: str) -> tuple[list[Tree], Dim]:
    """The sequences that a loop runs over, all of one length."""
    trees = [value(context, a) for a in arguments]
    size = _length(context, trees[0], arguments[0], what)
    for tree, e in zip(trees[1:], arguments[1:], strict=True):
        other = _length(context, tree, e, what)
        first, second = Tensor(DType.F32, (other,)), Tensor(DType.F32, (size,))
        conform_types(context, first, second, e.span, f"the length of what `{what}` runs over", None)
    return trees, size


@builtin("map")
def _map(
    context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
    expected: Type | None, name: str | None,
) -> Meaning:  # fmt: skip
    """`map f xs ys`: f of each item of a list, or along leading axes."""
    exactly(context, e, "map", ("f", "xs"), brackets, arguments, more=True)
    return _mapped(context, e, arguments, "map", name)


@builtin("vmap")
def _vmap(
    context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
    expected: Type | None, name: str | None,
) -> Meaning:  # fmt: skip
    """`vmap f xs ys`: f along a new leading axis of each argument."""
    exactly(context, e, "vmap", ("f", "xs"), brackets, arguments, more=True)
    return _mapped(context, e, arguments, "vmap", name)


def _mapped(
    context: Context, e: ast.Expr, arguments: tuple[ast.Expr, ...], what: str, name: str | None
) -> Meaning:  # fmt: skip
    trees, size = _sequences(context, arguments[1:], what)
    mark = len(context.opened)
    step = context.fresh_dimension("i")
    refs = Carried.through(context, arguments[0])
    with context.repeated(step, e.span) as statements:
        context.assume(Comparison("<", step, size))
        refs.enter(context)
        items = [
            as_argument(context, _at(context, t, step, a), a.span) for t, a in zip(trees, arguments[1:], strict=True)
        ]
        function = function_for(context, arguments[0], items)
        made = as_value(context, function.apply(context, arguments[0], (), tuple(items), None, None), e.span)
        body = Block(tuple(statements), (*refs.following(context), *leaves(made)))
    confine(context, tree_type(made), mark, e.span, f"what `{what}` gives for each item")
    held = refs.leave(context, made)
    result = stacked(context, made, size, None if refs.cells else name)
    results = (*held, *leaves(result))
    context.statements.append(For(results, str(step), size, refs.states, refs.initial, body, e.span))
    return result


@builtin("fold")
def _fold(
    context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
    expected: Type | None, name: str | None,
) -> Meaning:  # fmt: skip
    """`fold f init xs`: f (... (f init x0) ...) xn; the state keeps its type."""
    exactly(context, e, "fold", ("f", "init", "xs"), brackets, arguments)
    return _folded(context, e, arguments, "fold", expected, name)


@builtin("scan")
def _scan(
    context: Context, e: ast.Expr, brackets: tuple[ast.Expr, ...], arguments: tuple[ast.Expr, ...],
    expected: Type | None, name: str | None,
) -> Meaning:  # fmt: skip
    """`scan f init xs`, where f gives the next state and an output: the last state, and all outputs stacked."""
    exactly(context, e, "scan", ("f", "init", "xs"), brackets, arguments)
    return _folded(context, e, arguments, "scan", None, name)


def _folded(
    context: Context, e: ast.Expr, arguments: tuple[ast.Expr, ...], what: str, expected: Type | None, name: str | None
) -> Meaning:  # fmt: skip
    trees, size = _sequences(context, arguments[2:], what)
    initial = value(context, arguments[1], expected)
    type_ = tree_type(initial)
    mark = len(context.opened)
    step = context.fresh_dimension("i")
    refs = Carried.through(context, arguments[0])
    with context.repeated(step, e.span) as statements:
        context.assume(Comparison("<", step, size))
        refs.enter(context)
        state = new_tree(context, type_, None)
        given = (state, _at(context, trees[0], step, arguments[2]))
        items = [as_argument(context, t, a.span) for t, a in zip(given, arguments[1:], strict=True)]
        function = function_for(context, arguments[0], items)
        made = as_value(context, function.apply(context, arguments[0], (), tuple(items), None, None), e.span)
        following, output = made, None
        if what == "scan":
            if not isinstance(made, tuple) or len(made) != 2:
                message = "`scan` wants a function that gives the next state and an output, as a tuple"
                raise context.report(form_errors.wrong_tuple(arguments[0].span, message, tree_type(made)))
            following, output = made
        conform(
            context, following, type_, arguments[0].span, f"the next state that the function of `{what}` gives", None
        )
        outputs = leaves(output) if output is not None else ()
        results = (*leaves(following), *refs.following(context), *outputs)
        body = Block(tuple(statements), results)
    last = new_tree(context, type_, None if refs.cells else name)
    held = refs.leave(context, last, output)
    stack = None
    if output is not None:
        confine(context, tree_type(output), mark, e.span, "what each step of `scan` gives")
        stack = stacked(context, output, size, None)
    results = (*leaves(last), *held, *(leaves(stack) if stack is not None else ()))
    states, first = (*leaves(state), *refs.states), (*leaves(initial), *refs.initial)
    context.statements.append(For(results, str(step), size, states, first, body, e.span))
    return last if stack is None else (last, stack)


def function_for(context: Context, e: ast.Expr, items: list[ast.Name]) -> FunctionValue:
    """The function of a map: what it is applied to says what its parameters are."""
    wanted: Type = _OPEN
    for item in reversed(items):
        found = infer(context, item)
        wanted = Arrow(tree_type(as_value(context, found, item.span)), wanted)
    return expect_function(context, e, wanted, None)


_OPEN = Tensor(DType.F32, (variable("?"),))
"""Stands for a type that the function itself says."""
