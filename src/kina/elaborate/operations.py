"""Calls of operations: static parameters read by kind, operands stretched, the type rule applied."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kina.core.ir import Value
from kina.diagnostics import form_errors
from kina.diagnostics.diagnostic import Diagnostic, Edit, Help
from kina.dims.dim import Dim
from kina.elaborate.broadcasting import stretch, stretch_batch
from kina.elaborate.context import Context, Meaning
from kina.elaborate.dimensions import read_dim, read_shape, read_size
from kina.elaborate.dispatch import as_value, kind_of
from kina.elaborate.literals import adapts
from kina.elaborate.rule import CallRule
from kina.elaborate.spellings import spellings, usage
from kina.elaborate.suggestions import call_advice
from kina.elaborate.type_expressions import read_dtype
from kina.ops import Entry, lookup
from kina.ops.base import Kind, Parameter, result_type
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
    written = read_call(context, e, target, entry, brackets, arguments, infer, expected)
    return operate(context, entry.name, written.static, entry.name, e.span, written.operands, written.spans, name)


@dataclass(frozen=True, slots=True)
class Written:
    """What a call gives: values of the operands, where they stand, static parameters."""

    operands: tuple[Value, ...]
    spans: tuple[Span, ...]
    static: Mapping[str, Any]


def read_call(
    context: Context, e: ast.Expr, target: ast.Name, entry: Entry, brackets: tuple[ast.Expr, ...],
    arguments: tuple[ast.Expr, ...], infer: Infer, expected: Type | None,
) -> Written:  # fmt: skip
    """The operands and static parameters of a call of an operation, or of a form that is declared like one."""
    trailing = [p for p in entry.parameters if not p.bracket]
    count = len(arguments) - len(trailing)
    fixed = len(entry.operand_names)
    attributes = _match_brackets(context, e.span, entry, brackets)
    if count < (fixed - 1 if entry.variadic else fixed) or (count > fixed and not entry.variadic):
        raise context.report(_wrong_count(e, target, entry, arguments))
    operands = _operands(context, entry, arguments[:count], infer, expected if entry.keeps_dtype else None)
    rank = operands[0].type.rank if operands else 0
    static: dict[str, Any] = {}
    for p, written in attributes.items():
        static[p.name] = _parameter(context, entry, p, written, operands, rank)
    for p, argument in zip(trailing, arguments[count:], strict=True):
        static[p.name] = _parameter(context, entry, p, argument, operands, rank)
    return Written(operands, tuple(a.span for a in arguments[:count]), static)


def operate(
    context: Context, operation: str, static: Mapping[str, Any], shown: str, span: Span, operands: tuple[Value, ...],
    spans: tuple[Span, ...], name: str | None,
) -> Value:  # fmt: skip
    """Applies an operation to values: stretches, checks its type rule, appends the statement."""
    entry = lookup(operation)
    assert entry is not None, operation
    if entry.family == "elementwise" and len(operands) > 1:
        operands = stretch(context, shown, span, operands, spans)
    elif operation == "matmul":
        operands = stretch_batch(context, operands, spans)
    built = entry.build(**static)
    types = tuple(x.type for x in operands)
    rule = CallRule(context, entry, shown, span, types, spans)
    result = result_type(rule, built, types)
    for number, size in rule.unchecked.items():
        checked = _checked(context, entry, operands[number], size, spans[number])
        operands = (*operands[:number], checked, *operands[number + 1 :])
    return context.apply(built, operands, result, span, name)


def _checked(context: Context, entry: Entry, numbers: Value, size: Dim, span: Span) -> Value:
    """Plain integers as positions along an axis of that size: checked when the program runs, on behalf of `entry`."""
    if context.module.strict:
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
    for n in sorted(range(len(arguments)), key=lambda n: adapts(arguments[n])):
        apart = (entry.condition and n == 0) or n == entry.positions
        wanted = (_BOOL if n != entry.positions else _POSITION) if apart else known or hint
        found = infer(context, arguments[n], wanted)
        if not isinstance(found, Value):
            raise context.report(_no_tensor(context, found, arguments[n].span))
        values[n] = found
        if known is None and not apart:
            known = found.type.with_bound(None)
    return tuple(values[n] for n in range(len(arguments)))


# ---------------------------------------------------------------- static parameters


def _match_brackets(
    context: Context, span: Span, entry: Entry, brackets: tuple[ast.Expr, ...]
) -> dict[Parameter, ast.Expr]:
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
            raise context.report(_bad_item(item, entry, parameters, twice=parameter is not None))
        given[parameter] = value
    missing = [p.name for p in parameters if p not in given and p.default is None]
    if missing:
        what = " and ".join(f"`{spellings(p)[0]}`" for p in parameters if p.name in missing)
        help_ = (Help("to reduce over all axes, name them: axes=[0, 1]"),) if entry.family == "reduction" else ()
        message = f"`{entry.name}` needs {what} in its bracket"
        raise context.report(form_errors.bad_attribute(span, message, usage(entry), help_))
    return given


def _bad_item(item: ast.Expr, entry: Entry, parameters: list[Parameter], twice: bool) -> Diagnostic:
    if not parameters:
        return form_errors.bad_attribute(item.span, f"`{entry.name}` takes nothing in a bracket", usage(entry))
    if twice:
        return form_errors.bad_attribute(item.span, f"`{entry.name}` is given this twice", usage(entry))
    if isinstance(item, ast.NamedItem):
        help_ = _attribute_advice(item, entry, [s for p in parameters for s in spellings(p)])
        return form_errors.bad_attribute(item.span, f"`{entry.name}` has no `{item.name}`", usage(entry), help_)
    return form_errors.bad_attribute(
        item.span, f"`{entry.name}` takes no more than {len(parameters)} items here", usage(entry)
    )


def _attribute_advice(item: ast.NamedItem, entry: Entry, names: list[str]) -> tuple[Help, ...]:
    if item.name in ("keepdim", "keepdims") and entry.name == "reduce":
        return (Help("`reduce_keep` keeps the reduced axes, with size 1"),)
    match = "axis" if item.name == "dim" and "axis" in names else form_errors.nearest(item.name, names)
    if match is None:
        return ()
    at = Span(item.span.source, item.span.start, item.span.start + len(item.name))
    return (Help(f"did you mean `{match}`?", (Edit(at, match),)),)


def _wrong_count(e: ast.Expr, target: ast.Name, entry: Entry, arguments: tuple[ast.Expr, ...]) -> Diagnostic:
    wanted = [*entry.operand_names, *(p.name for p in entry.parameters if not p.bracket)]
    help_ = call_advice(e, target.span, arguments, missing=len(arguments) < len(wanted))
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
            return _shape(context, entry, e)
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
        raise context.report(form_errors.axis_out_of_range(e.span, entry.name, axis, rank, shape))
    if axis < 0 and context.module.strict:
        raise context.report(form_errors.sugar(e.span, "an axis counted from the end", str(axis + rank)))
    return axis % rank


def _axes(context: Context, entry: Entry, e: ast.Expr, rank: int, operands: tuple[Value, ...]) -> tuple[int, ...]:
    items = e.items if isinstance(e, ast.ListLiteral) else (e,)
    axes = [_axis(context, entry, item, rank, operands) for item in items]
    if len(set(axes)) != len(axes):
        raise context.report(form_errors.bad_attribute(e.span, "an axis is named twice", usage(entry)))
    if not axes:
        raise context.report(form_errors.bad_attribute(e.span, "no axis is named", usage(entry)))
    return tuple(sorted(axes))


def _shape(context: Context, entry: Entry, e: ast.Expr) -> tuple[Dim, ...]:
    if not isinstance(e, ast.ListLiteral):
        raise context.report(
            form_errors.bad_attribute(e.span, f"`{entry.name}` wants a shape in brackets here", usage(entry))
        )
    return read_shape(context, e.items)


def _permutation(
    context: Context, entry: Entry, e: ast.Expr, rank: int, operands: tuple[Value, ...]
) -> tuple[int, ...]:
    if not isinstance(e, ast.ListLiteral):
        raise context.report(
            form_errors.bad_attribute(e.span, f"`{entry.name}` wants an order of axes in brackets here", usage(entry))
        )
    order = [_integer(context, entry, item) for item in e.items]
    if sorted(a % rank if rank and -rank <= a < rank else a for a in order) != list(range(rank)):
        raise context.report(form_errors.not_a_permutation(e.span, entry.name, order, rank))
    return tuple(a % rank for a in order)


def _choice(context: Context, entry: Entry, p: Parameter, e: ast.Expr) -> str:
    text = e.text if isinstance(e, ast.Name) else e.span.text
    if text in p.choices:
        return text
    match = form_errors.nearest(text, p.choices)
    help_ = (Help(f"did you mean `{match}`?", (Edit(e.span, match),)),) if match else ()
    message = f"`{entry.name}` does not know `{text}`"
    raise context.report(form_errors.bad_attribute(e.span, message, usage(entry), help_))
