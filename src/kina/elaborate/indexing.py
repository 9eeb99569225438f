"""`x[i, 2:n, ..., :]` and `split`: sugar for `slice` and `squeeze`, and for `gather` at computed positions."""

from __future__ import annotations

from kina.core.ir import Stack, Tree, Value, rename_tree, tree_type
from kina.diagnostics import form_errors
from kina.diagnostics.diagnostic import Edit
from kina.dims.dim import Dim, constant
from kina.dims.proposition import Comparison
from kina.elaborate.context import Context
from kina.elaborate.dimensions import read_dim, read_size
from kina.elaborate.dispatch import tensor
from kina.elaborate.guesses import call_of, guess
from kina.elaborate.obligations import oblige
from kina.elaborate.operations import operate
from kina.source import Span
from kina.syntax import ast
from kina.types import DType, Tensor

_POSITION = Tensor(DType.I64, ())


def index(context: Context, e: ast.Bracket, x: Tree, name: str | None) -> Tree:
    """The part of `x` that an index picks: a number drops its axis, a slice keeps it, `...` stands for all others.

    A number may be a scalar that is computed. One tensor of positions may stand among the items: its axes take the
    place of the axis. Of a list, the first item of the index picks an item.
    """
    if context.home.strict:
        raise context.report(form_errors.sugar(e.span, "indexing", "slice[axis=...] x start stop, then squeeze"))
    if isinstance(x, Stack):
        return _item(context, e, x)
    if not isinstance(x, Value):
        raise context.report(
            form_errors.wrong_tuple(e.target.span, "only a tensor or a list has an index", tree_type(x))
        )
    items = _one_for_each_axis(context, e, x.type.rank)
    axis, many = 0, 0
    for item in items:
        computed = _computed(context, item)
        if computed is not None:
            many += computed.type.rank > 0
            if many > 1:
                what = (
                    "two of its items are tensors; `gather` one after the other says which axes are meant, and "
                    "`take_along` takes one element of each row"
                )
                raise context.report(form_errors.bad_index(item.span, what))
            x = _gathered(context, e, x, axis, item, computed)
            axis += computed.type.rank
        elif isinstance(item, ast.Slice):
            if (item.start, item.stop, item.step) != (None, None, None):
                x = _sliced(context, e, x, axis, item)
            axis += 1
        else:
            x = _picked(context, e, x, axis, item)
    return x


def _item(context: Context, e: ast.Bracket, x: Stack) -> Tree:
    """`layers[i]`: of each tensor in the list, what stands at i along the list's axis."""
    if len(e.items) != 1 or isinstance(e.items[0], ast.Slice | ast.Hole):
        raise context.report(form_errors.bad_index(e.span, "a list is indexed by one number"))
    (item,) = e.items
    at = _computed(context, item)
    if at is None:
        return rename_tree(x.item, lambda v: _picked(context, e, v, 0, item))
    if at.type.rank:
        raise context.report(form_errors.bad_index(item.span, "a list is indexed by one number, and this is a tensor"))
    return rename_tree(x.item, lambda v: _gathered(context, e, v, 0, item, at))


def _computed(context: Context, e: ast.Expr) -> Value | None:
    """The tensor of positions that an item of an index is; None for what is a dimension or a slice."""
    return tensor(context, e, _POSITION) if _is_value(context, e) else None


def _is_value(context: Context, e: ast.Expr | None) -> bool:
    """Whether an item is computed, from values that are in scope."""
    match e:
        case ast.Name(text=name):
            return name not in context.dims and name in context.values
        case ast.Unary(operand=operand):
            return _is_value(context, operand)
        case ast.Binary(left=left, right=right):
            return _is_value(context, left) or _is_value(context, right)
        case ast.Apply(function=ast.Name(text="cdiv" | "min" | "max"), arguments=arguments):
            return any(_is_value(context, argument) for argument in arguments)
        case ast.TupleLiteral(items=items):
            return any(_is_value(context, item) for item in items)
        case ast.Apply() | ast.Bracket() | ast.FieldAccess() | ast.Projection() | ast.ListLiteral() | ast.If():
            return True
    return False


def _gathered(context: Context, e: ast.Bracket, x: Value, axis: int, item: ast.Expr, at: Value) -> Value:
    spans = (e.target.span, item.span)
    return operate(context, "gather", {"axis": axis}, "an index", item.span, (x, at), spans, None)


def _one_for_each_axis(context: Context, e: ast.Bracket, rank: int) -> list[ast.Expr]:
    """The items with `...` and what is left out written as `:`."""
    whole = ast.Slice(None, None, None, span=e.span)
    _refuse_new_axes(context, e)
    dots = [n for n, item in enumerate(e.items) if isinstance(item, ast.Hole) and item.name is None]
    given = len(e.items) - len(dots)
    if given > rank or len(dots) > 1:
        what = "`...` stands twice in it" if len(dots) > 1 else f"it has {given} items, and the tensor {rank} axes"
        raise context.report(form_errors.bad_index(e.span, what))
    items = list(e.items)
    fill: list[ast.Expr] = [whole] * (rank - given)
    if dots:
        return [*items[: dots[0]], *fill, *items[dots[0] + 1 :]]
    return [*items, *fill]


def _refuse_new_axes(context: Context, e: ast.Bracket) -> None:
    """NumPy's `x[:, None]`: an index adds no axis."""
    for n, item in enumerate(e.items):
        if not isinstance(item, ast.Name) or item.text not in ("None", "newaxis") or item.text in context.values:
            continue
        text = call_of(f"expand_dims[axis={n}]", e.target.span)
        others = [i for i in e.items if i is not item]
        whole = all(isinstance(i, ast.Slice) and i.start is i.stop is i.step is None for i in others)
        help_ = (guess("an axis of size 1 is added by expand_dims", Edit(e.span, text)),) if whole else ()
        raise context.report(form_errors.bad_index(item.span, "an index takes axes away and adds none", help_))


def _sliced(context: Context, e: ast.Bracket, x: Value, axis: int, item: ast.Slice) -> Value:
    """`start:stop:step`, the step positive or a negative number: then the elements come from the last back."""
    if _is_value(context, item.start) or _is_value(context, item.stop):
        return _sliced_at(context, e, x, axis, item)
    size = x.type.shape[axis]
    step = read_dim(context, item.step) if item.step is not None else constant(1)
    if step.value == 0:
        raise context.report(form_errors.bad_index(item.span, "the step is 0"))
    backwards = step.value is not None and step.value < 0
    first = _position(context, item.start, size) if item.start is not None else None
    end = _position(context, item.stop, size) if item.stop is not None else None
    if backwards:
        first, end = (bound if bound is None else bound + 1 for bound in (end, first))
    start, stop = constant(0) if first is None else first, size if end is None else end
    at = e.target.span
    if first is not None or end is not None:
        x = _slice(context, item.span, at, x, axis, start, stop)
    if backwards:
        x = operate(context, "flip", {"axis": axis}, "flip", item.span, (x,), (at,), None)
    n = -step if backwards else step
    if n.value == 1:
        return x
    return operate(context, "every", {"axis": axis, "n": n}, "every", item.span, (x,), (at,), None)


def _sliced_at(context: Context, e: ast.Bracket, x: Value, axis: int, item: ast.Slice) -> Value:
    """`start:start + n` from a computed place: a `dynamic_slice`, whose size is the dimension n."""
    match item.start, item.stop:
        case start, ast.Binary(operator="+", left=left, right=right) if start == left and start is not None:
            size = right
        case _:
            why = "a slice from or to a computed place is written start : start + n, so that its size n is known"
            raise context.report(form_errors.bad_index(item.span, why))
    if item.step is not None:
        raise context.report(form_errors.bad_index(item.span, "a slice from a computed place takes no step"))
    at = tensor(context, start, _POSITION)
    static = {"axis": axis, "n": read_size(context, size)}
    spans = (e.target.span, start.span)
    return operate(context, "dynamic_slice", static, "a slice", item.span, (x, at), spans, None)


def _picked(context: Context, e: ast.Bracket, x: Value, axis: int, item: ast.Expr) -> Value:
    size = x.type.shape[axis]
    start = _position(context, item, size)
    beyond = (start - size).value
    if beyond is not None and beyond >= 0:
        help_ = (guess("the last one is -1", Edit(item.span, "-1")),)
        why = f"the positions along axis {axis} are 0 to {size - 1}"
        oblige(context, Comparison("<", start, size), item.span, why, help_)
    one = _slice(context, item.span, e.target.span, x, axis, start, start + 1)
    return operate(context, "squeeze", {"axis": axis}, "squeeze", item.span, (one,), (e.target.span,), None)


def _position(context: Context, e: ast.Expr, size: Dim) -> Dim:
    """A position along an axis; a negative number counts from the end."""
    position = read_dim(context, e)
    return size + position if position.value is not None and position.value < 0 else position


def _slice(context: Context, span: Span, operand: Span, x: Value, axis: int, start: Dim, stop: Dim) -> Value:
    static = {"axis": axis, "start": start, "stop": stop}
    return operate(context, "slice", static, "slice", span, (x,), (operand,), None)
