"""Calls of operations: static parameters read by kind, operands stretched, the type rule applied."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kina.core.ir import Value
from kina.diagnostics import form_errors
from kina.diagnostics.diagnostic import Diagnostic, Edit, Help
from kina.diagnostics.names import nearest
from kina.dims.dim import Dim, constant
from kina.elaborate.broadcasting import stretch, stretch_batch
from kina.elaborate.context import Context, Meaning
from kina.elaborate.dimensions import read_dim, read_shape, read_size
from kina.elaborate.dispatch import as_value, kind_of
from kina.elaborate.guesses import exchanged, guess, missing_axis, parenthesised, quotient
from kina.elaborate.literals import adapts, dtype_of
from kina.elaborate.rule import CallRule
from kina.elaborate.spellings import spellings, usage
from kina.elaborate.suggestions import call_advice
from kina.elaborate.type_expressions import read_dtype
from kina.ops import Entry, lookup
from kina.ops.base import Kind, Operation, Parameter, result_type
from kina.source import Span
from kina.syntax import ast
from kina.types import DType, Tensor, Type, shape_text

Infer = Callable[..., Meaning]
_BOOL = Tensor(DType.BOOL, ())
_POSITION = Tensor(DType.I64, ())


def call_operation(
    context: Context, e: ast.Expr, target: ast.Name, entry: Entry, brackets: tuple[ast.Expr, ...],
    arguments: tuple[ast.Expr, ...], infer: Infer, expected: Type | None, name: str | None,
) -> Value:  # fmt: skip
    """`operation[attributes] operands parameters`."""
    hint = dtype_of(expected) if entry.keeps_dtype else None
    operands, spans, static = read_call(context, e, target, entry, brackets, arguments, infer, hint)
    if entry.family == "reduction" and static.get("axes") == ():
        return _reduced_scalar(context, static, e.span, operands, spans, name)
    return operate(context, entry.name, static, entry.name, e.span, operands, spans, name)


def form(name: str, operands: tuple[str, ...], parameters: tuple[Parameter, ...]) -> Entry:
    """What is written like an operation and stands for several."""

    def build(**static: object) -> Operation:
        raise AssertionError(f"{name} is no operation of core")

    return Entry(name, "form", "", "", operands, False, parameters, build, lambda: ())


def name_in(e: ast.Expr, name: str) -> ast.Name:
    """Where a call names what it calls."""
    function = e.function if isinstance(e, ast.Apply) else e
    written = function.target if isinstance(function, ast.Bracket) else function
    return written if isinstance(written, ast.Name) else ast.Name(name, span=e.span)


class Written(NamedTuple):
    """What a call gives: values of the operands, where they stand, static parameters."""

    operands: tuple[Value, ...]
    spans: tuple[Span, ...]
    static: dict[str, Any]


def read_call(
    context: Context, e: ast.Expr, target: ast.Name, entry: Entry, brackets: tuple[ast.Expr, ...],
    arguments: tuple[ast.Expr, ...], infer: Infer, hint: Type | None,
) -> Written:  # fmt: skip
    """The operands and static parameters of a call of an operation, or of a form that is declared like one."""
    trailing = [p for p in entry.parameters if not p.bracket]
    count = len(arguments) - len(trailing)
    fixed = len(entry.operand_names)
    attributes = _match_brackets(context, e, target, entry, brackets, arguments)
    if count < (fixed - 1 if entry.variadic else fixed) or (count > fixed and not entry.variadic):
        raise context.report(_wrong_count(e, target, entry, arguments))
    _in_order(context, entry, arguments, trailing)
    operands = _operands(context, entry, arguments[:count], infer, hint)
    rank = operands[0].type.rank if operands else 0
    static: dict[str, Any] = {}
    for p, written in attributes.items():
        static[p.name] = _parameter(context, entry, p, written, operands, rank)
    for p, argument in zip(trailing, arguments[count:], strict=True):
        static[p.name] = _parameter(context, entry, p, argument, operands, rank)
    return Written(operands, tuple(a.span for a in arguments[:count]), static)


def _in_order(context: Context, entry: Entry, arguments: tuple[ast.Expr, ...], trailing: list[Parameter]) -> None:
    """Operands come before shapes and orders of axes."""
    listed = [p.kind in (Kind.SHAPE, Kind.PERMUTATION) for p in trailing]
    if len(arguments) != 2 or listed != [True]:
        return
    first, second = arguments
    if isinstance(first, ast.ListLiteral) and not isinstance(second, ast.ListLiteral):
        help_ = (exchanged(first.span, second.span, "exchange them"),)
        message = f"`{entry.name}` takes its operand first"
        raise context.report(form_errors.bad_attribute(first.span, message, usage(entry), help_))


def _reduced_scalar(
    context: Context, static: Mapping[str, Any], span: Span, operands: tuple[Value, ...], spans: tuple[Span, ...],
    name: str | None,
) -> Value:  # fmt: skip
    """A reduction over all axes of what has none: over its one element."""
    row = operate(context, "reshape", {"shape": (constant(1),)}, "reshape", span, operands, spans, None)
    return operate(context, "reduce", {**static, "axes": (0,)}, "reduce", span, (row,), spans, name)


def operate(
    context: Context, operation: str, static: Mapping[str, Any], shown: str, span: Span, operands: tuple[Value, ...],
    spans: tuple[Span, ...], name: str | None,
) -> Value:  # fmt: skip
    """Applies an operation to values: stretches, checks its type rule, appends the statement."""
    entry = lookup(operation)
    assert entry is not None, operation
    built = entry.build(**static)
    operands = _read(context, built, operands, spans)
    if (entry.family == "elementwise" or operation == "fold_in") and len(operands) > 1:
        operands = stretch(context, shown, span, operands, spans)
    elif operation == "matmul":
        stretched = stretch_batch(context, operands, spans)
        if any(s is not x for s, x in zip(stretched, operands, strict=True)) and _apart(operands):
            written = tuple(x.type for x in operands)
            CallRule(context, entry, shown, span, written, spans).same_size((0, -1), (1, -2), "K")
        operands = stretched
    types = tuple(x.type for x in operands)
    rule = CallRule(context, entry, shown, span, types, spans)
    result = result_type(rule, built, types)
    for number, size in rule.unchecked.items():
        checked = _checked(context, entry, operands[number], size, spans[number])
        operands = (*operands[:number], checked, *operands[number + 1 :])
    return context.apply(built, operands, result, span, name)


def _read(
    context: Context, built: Operation, operands: tuple[Value, ...], spans: tuple[Span, ...]
) -> tuple[Value, ...]:
    """Quantised operands of what needs their numbers one by one, as F32: `x @ transpose w [1, 0]`."""
    read = []
    for x, span in zip(operands, spans, strict=True):
        if x.type.dtype.block is not None and built.takes_apart(x.type):
            if context.home.strict:
                raise context.report(form_errors.sugar(span, "a quantised operand", f"cast[F32] {parenthesised(span)}"))
            x = operate(context, "cast", {"to": DType.F32}, "cast", span, (x,), (span,), None)
        read.append(x)
    return tuple(read)


def _apart(operands: tuple[Value, ...]) -> bool:
    """Whether the axes that `matmul` sums differ as written: then the error shows the operands before they stretch."""
    return operands[0].type.shape[-1] is not operands[1].type.shape[-2]


def _checked(context: Context, entry: Entry, numbers: Value, size: Dim, span: Span) -> Value:
    """Plain integers as positions along an axis of that size: checked when the program runs, on behalf of `entry`."""
    if context.home.strict:
        raise context.report(form_errors.sugar(span, "an integer as a position", f"to_idx ... {size.factor_text()}"))
    static = {"bound": size, "what": entry.name}
    return operate(context, "to_idx", static, entry.name, span, (numbers,), (span,), None)


def takes_fewer(entry: Entry, count: int) -> bool:
    """Whether so many arguments are too few for the operation."""
    trailing = sum(not p.bracket for p in entry.parameters)
    return count < trailing + len(entry.operand_names) - entry.variadic


def _no_tensor(context: Context, found: Meaning, span: Span) -> Diagnostic:
    """The error for an operand that is none."""
    tree = as_value(context, found, span)
    return form_errors.not_a_value(span, kind_of(tree))


def _operands(
    context: Context, entry: Entry, arguments: tuple[ast.Expr, ...], infer: Infer, hint: Type | None
) -> tuple[Value, ...]:
    """The operands' values; literals take the dtype of the first operand that is none, and no condition or position."""
    values: dict[int, Value] = {}
    known: Type | None = None
    for n in sorted(range(len(arguments)), key=lambda n: adapts(context, arguments[n])):
        apart = (entry.condition and n == 0) or n == entry.positions
        wanted = (_BOOL if n != entry.positions else _POSITION) if apart else known or hint
        found = infer(context, arguments[n], wanted)
        if not isinstance(found, Value):
            raise context.report(_no_tensor(context, found, arguments[n].span))
        values[n] = found
        if known is None and not apart:
            known = dtype_of(found.type)
    return tuple(values[n] for n in range(len(arguments)))


# ---------------------------------------------------------------- static parameters


def _match_brackets(
    context: Context, e: ast.Expr, target: ast.Name, entry: Entry, brackets: tuple[ast.Expr, ...],
    arguments: tuple[ast.Expr, ...],
) -> dict[Parameter, ast.Expr]:  # fmt: skip
    """Which bracket item gives which attribute: by name, or by position among those not named."""
    parameters = [p for p in entry.parameters if p.bracket]
    given: dict[Parameter, ast.Expr] = {}
    named = {item.name for item in brackets if isinstance(item, ast.NamedItem)}
    positional = iter([p for p in parameters if named.isdisjoint(spellings(p))])
    for item in brackets:
        if isinstance(item, ast.NamedItem):
            parameter = next((p for p in parameters if item.name in spellings(p)), None)
            value = item.value
        else:
            parameter, value = next(positional, None), item
        if parameter is None or parameter in given:
            raise context.report(_bad_item(item, target, entry, parameters, twice=parameter is not None))
        given[parameter] = value
    missing = [p.name for p in parameters if p not in given and p.default is None]
    if missing:
        what = " and ".join(f"`{spellings(p)[0]}`" for p in parameters if p.name in missing)
        message = f"`{entry.name}` needs {what} in its bracket"
        help_ = missing_axis(entry, target.span, brackets, arguments) if missing in (["axis"], ["axes"]) else ()
        if entry.family == "reduction":
            help_ = (*help_, Help("to reduce over all axes, say so: axes=all"))
        raise context.report(form_errors.bad_attribute(e.span, message, usage(entry), help_))
    return given


def _bad_item(
    item: ast.Expr, target: ast.Name, entry: Entry, parameters: list[Parameter], twice: bool
) -> Diagnostic:
    if not parameters:
        return form_errors.bad_attribute(item.span, f"`{entry.name}` takes nothing in a bracket", usage(entry))
    if twice:
        return form_errors.bad_attribute(item.span, f"`{entry.name}` is given this twice", usage(entry))
    if isinstance(item, ast.NamedItem):
        help_ = _attribute_advice(item, target, entry, [s for p in parameters for s in spellings(p)])
        return form_errors.bad_attribute(item.span, f"`{entry.name}` has no `{item.name}`", usage(entry), help_)
    return form_errors.bad_attribute(
        item.span, f"`{entry.name}` takes no more than {len(parameters)} items here", usage(entry)
    )


def _attribute_advice(item: ast.NamedItem, target: ast.Name, entry: Entry, names: list[str]) -> tuple[Help, ...]:
    if item.name in ("keepdim", "keepdims") and entry.name == "reduce":
        comma = item.span.source.text.rfind(",", target.span.end, item.span.start)
        edits = (Edit(target.span, "reduce_keep"), Edit(Span(item.span.source, comma, item.span.end), ""))
        return (Help("`reduce_keep` keeps the reduced axes, with size 1", edits if comma > 0 else ()),)
    match = "axis" if item.name == "dim" and "axis" in names else nearest(item.name, names)
    if match is None:
        return ()
    at = Span(item.span.source, item.span.start, item.span.start + len(item.name))
    return (Help(f"did you mean `{match}`?", (Edit(at, match),)),)


def _wrong_count(e: ast.Expr, target: ast.Name, entry: Entry, arguments: tuple[ast.Expr, ...]) -> Diagnostic:
    wanted = [*entry.operand_names, *(p.name for p in entry.parameters if not p.bracket)]
    help_ = call_advice(e, target.span, arguments, missing=len(arguments) < len(wanted))
    if entry.name == "transpose" and len(arguments) == 1:
        end = Span(e.span.source, e.span.end, e.span.end)
        help_ = (*help_, guess("its last two axes exchanged", Edit(end, " [..., -1, -2]")))
    got = len(arguments)
    return form_errors.wrong_argument_count(e.span, entry.name, wanted, got, usage(entry), help_, entry.variadic)


def _parameter(
    context: Context, entry: Entry, p: Parameter, e: ast.Expr, operands: tuple[Value, ...], rank: int
) -> object:
    match p.kind:
        case Kind.AXIS:
            return _axis(context, entry, e, rank, operands)
        case Kind.NEW_AXIS:
            return _axis(context, entry, e, rank + 1, operands)
        case Kind.AXES:
            return _axes(context, entry, e, rank, operands)
        case Kind.SIZE:
            return read_size(context, e)
        case Kind.DIM:
            return read_dim(context, e)
        case Kind.SHAPE:
            return _shape(context, entry, e, operands)
        case Kind.PERMUTATION:
            return _permutation(context, entry, e, rank, operands)
        case Kind.DTYPE:
            return read_dtype(context, e)
        case Kind.CHOICE:
            return _choice(context, entry, p, e)


def _integer(context: Context, entry: Entry, e: ast.Expr) -> int:
    match e:
        case ast.Number(value=int() as value):
            return value
        case ast.Unary(operator="-", operand=ast.Number(value=int() as value)):
            return -value
    message = f"`{entry.name}`: an axis is a number that is known when the program is written"
    raise context.report(form_errors.bad_attribute(e.span, message, usage(entry)))


def _axis(context: Context, entry: Entry, e: ast.Expr, rank: int, operands: tuple[Value, ...]) -> int:
    axis = _integer(context, entry, e)
    if not -rank <= axis < rank:
        shape = shape_text(operands[0].type.shape)
        last = rank - 1 if axis > 0 else 0
        advice = guess(f"the {'last' if last else 'first'} axis is {last}", Edit(e.span, str(last)))
        out = form_errors.axis_out_of_range(e.span, entry.name, axis, rank, shape, (advice,) if rank else ())
        raise context.report(out)
    if axis < 0 and context.home.strict:
        raise context.report(form_errors.sugar(e.span, "an axis counted from the end", str(axis + rank)))
    return axis % rank


def _axes(context: Context, entry: Entry, e: ast.Expr, rank: int, operands: tuple[Value, ...]) -> tuple[int, ...]:
    if isinstance(e, ast.Name) and e.text == "all":
        if context.home.strict:
            raise context.report(form_errors.sugar(e.span, "`axes=all`", "the axes as numbers"))
        return tuple(range(rank))
    items = e.items if isinstance(e, ast.ListLiteral) else (e,)
    axes = [_axis(context, entry, item, rank, operands) for item in items]
    if len(set(axes)) != len(axes):
        raise context.report(form_errors.bad_attribute(e.span, "an axis is named twice", usage(entry)))
    if not axes:
        raise context.report(form_errors.bad_attribute(e.span, "no axis is named", usage(entry)))
    return tuple(sorted(axes))


def _shape(context: Context, entry: Entry, e: ast.Expr, operands: tuple[Value, ...]) -> tuple[Dim, ...]:
    if not isinstance(e, ast.ListLiteral):
        items = e.items if isinstance(e, ast.TupleLiteral) else (e,)
        listed = guess("a shape stands in brackets", Edit(e.span, f"[{', '.join(i.span.text for i in items)}]"))
        message = f"`{entry.name}` wants a shape in brackets here"
        raise context.report(form_errors.bad_attribute(e.span, message, usage(entry), (listed,)))
    rest = [item for item in e.items if isinstance(item, ast.Unary) and item.span.text == "-1"]
    if len(rest) == 1 and operands:
        others = read_shape(context, [item for item in e.items if item is not rest[0]])
        left = quotient(operands[0].type.shape, others)
        help_ = () if left is None else (guess(f"what is left over is {left}", Edit(rest[0].span, str(left))),)
        raise context.report(form_errors.negative_size(rest[0].span, -1, help_))
    return read_shape(context, e.items)


def _permutation(
    context: Context, entry: Entry, e: ast.Expr, rank: int, operands: tuple[Value, ...]
) -> tuple[int, ...]:
    if not isinstance(e, ast.ListLiteral):
        raise context.report(
            form_errors.bad_attribute(e.span, f"`{entry.name}` wants an order of axes in brackets here", usage(entry))
        )
    dots = [n for n, item in enumerate(e.items) if isinstance(item, ast.Hole) and item.name is None]
    written = [_integer(context, entry, item) for n, item in enumerate(e.items) if n not in dots[:1]]
    order = [a % rank if -rank <= a < rank else a for a in written]
    if dots:
        order[dots[0] : dots[0]] = [axis for axis in range(rank) if axis not in order]
    if sorted(order) != list(range(rank)):
        help_ = () if dots else _two_exchanged(e.span, order, rank)
        raise context.report(form_errors.not_a_permutation(e.span, entry.name, written, rank, help_))
    if (dots or min(written, default=0) < 0) and context.home.strict:
        what = "`...` in an order of axes" if dots else "an axis counted from the end"
        raise context.report(form_errors.sugar(e.span, what, str(order)))
    return tuple(order)


def _two_exchanged(span: Span, order: list[int], rank: int) -> tuple[Help, ...]:
    """Two axes where the order of all is wanted: in other libraries they are exchanged."""
    if len(order) != 2 or len({*order} & {*range(rank)}) != 2:
        return ()
    first, second = order
    whole = list(range(rank))
    whole[first], whole[second] = second, first
    return (guess(f"to exchange the axes {first} and {second}, name all", Edit(span, str(whole))),)


_OTHER_CHOICES = {
    "avg": "mean", "average": "mean", "amax": "max", "maximum": "max", "amin": "min", "minimum": "min",
    "product": "prod",
}  # fmt: skip
"""What other libraries call reductions."""


def _choice(context: Context, entry: Entry, p: Parameter, e: ast.Expr) -> str:
    text = e.text if isinstance(e, ast.Name) else e.span.text
    if text in p.choices:
        return text
    match = nearest(text, p.choices) or _OTHER_CHOICES.get(text)
    help_ = (Help(f"did you mean `{match}`?", (Edit(e.span, match),)),) if match else ()
    message = f"`{entry.name}` does not know `{text}`"
    raise context.report(form_errors.bad_attribute(e.span, message, usage(entry), help_))
