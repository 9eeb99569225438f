"""The page of an operation, from its declaration alone."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from kina.doc.demands import TypeRule, type_rule
from kina.doc.formulas import derivatives
from kina.doc.pages import Page, Section, summary_of, table
from kina.elaborate.spellings import spellings, usage
from kina.ops.base import DTypeClass, Entry, Kind, Operation, Parameter, Sample
from kina.ops.elementwise import OPERATORS
from kina.syntax.lexer import RESERVED
from kina.types import DType, Tensor, shape_text

_MOST_SAMPLES = 4
_OPERATORS: dict[str, str] = {name: sign for sign, name in OPERATORS.items() if sign != "="}
_WORDS = {"floor_div": "div", "remainder": "mod", "logical_not": "not"}
_CLASSES = {
    DTypeClass.FLOAT: "F64 F32 F16 BF16",
    DTypeClass.INT: "I64 I32 I16 I8 U8",
    DTypeClass.NUM: "floats and integers",
    DTypeClass.BOOL: "Bool",
    DTypeClass.ANY: "any dtype",
}


def operation_page(entry: Entry) -> Page:
    """All that its declaration says and implies."""
    text = inspect.cleandoc(entry.documentation)
    rule = type_rule(entry)
    sections = [
        Section("Shapes", _shapes_section(entry, rule)),
        Section("Parameters", _parameters(entry.parameters)),
        Section("Dtypes", _dtypes(entry, rule)),
        Section("Positions", "\n".join(_positions(entry, rule))),
        Section("Errors", "\n".join(_errors(entry, rule))),
        Section("Derivative", _derivative(entry)),
        Section("In PyTorch", "" if entry.torch == "none" else f"```python\n{entry.torch}\n```"),
        Section("Example", f"```kina\n{entry.example}\n```" if entry.example else ""),
    ]
    return Page(
        entry.name, "operations", entry.family, summary_of(text), text, _usage(entry), entry.shapes,
        entry.torch, tuple(s for s in sections if s.text),
    )  # fmt: skip


def _usage(entry: Entry) -> str:
    called = usage(entry)
    sign = _OPERATORS.get(entry.name) or _WORDS.get(entry.name)
    if sign is None:
        return called
    *before, last = entry.operand_names
    written = " ".join([*before, sign, last])
    return written if entry.name in RESERVED else f"{written}\n{called}"


def _shapes_section(entry: Entry, rule: TypeRule) -> str:
    note = ""
    if entry.family == "elementwise" and len(entry.operand_names) > 1:
        note = "\n\nOne operand may be the smaller: it is stretched to the other's shape (see `broadcasting`)."
    rows = [
        (", ".join(map(_tensor, sample.operands)) or "none", _given(sample.operation) or "none", _tensor(result))
        for sample, result in _shown(rule)
    ]
    shown = f"\n\n{table(('operands', 'parameters', 'result'), rows)}" if rows else ""
    return f"`{entry.shapes}`{note}{shown}"


def _shown(rule: TypeRule) -> list[tuple[Sample, Tensor]]:
    """A few samples; of an operation of several kinds, one for each."""
    if not rule.by_choice:
        return list(rule.results[:_MOST_SAMPLES])
    one: dict[object, tuple[Sample, Tensor]] = {}
    for sample, result in rule.results:
        one.setdefault(next(iter(sample.operation.arguments().values())), (sample, result))
    return list(one.values())


def _tensor(x: Tensor) -> str:
    return f"`{x.element}{shape_text(x.shape)}`"


def _given(operation: Operation) -> str:
    """The static parameters of an instance: `axis=1, n=C`."""
    return ", ".join(f"`{name}={_value(value)}`" for name, value in operation.arguments().items())


def _value(value: object) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, tuple) else str(value)


def _parameters(parameters: tuple[Parameter, ...]) -> str:
    rows = [
        (
            f"`{' or '.join(spellings(p))}`",
            "one of " + " ".join(f"`{c}`" for c in p.choices) if p.kind is Kind.CHOICE else p.kind.value,
            "in the bracket" if p.bracket else "behind the operands",
            f"`{p.default}`" if p.default is not None else "has to be given",
        )
        for p in parameters
    ]
    return table(("name", "what it is", "where", "default"), rows) if rows else ""


def _dtypes(entry: Entry, rule: TypeRule) -> str:
    lines = []
    shared = {second: first for first, second in rule.alike}
    for number, name in enumerate(entry.operand_names):
        if number in rule.positions:
            lines.append(f"- `{name}`: integers, as positions")
        elif number == 0 and rule.by_choice:
            lines += [f"- `{name}`: {_CLASSES[c]} for {kinds}" for c, kinds in _kinds(rule)]
        elif number in shared:
            lines.append(f"- `{name}`: the dtype of `{entry.operand_names[shared[number]]}`")
        else:
            lines.append(f"- `{name}`: {_CLASSES[rule.classes.get(number, DTypeClass.ANY)]}")
    return "\n".join([*lines, f"- result: {_result_dtype(entry, rule)}"])


def _kinds(rule: TypeRule) -> Iterator[tuple[DTypeClass, str]]:
    for wanted in dict.fromkeys(rule.by_choice.values()):
        yield wanted, " ".join(f"`{kind}`" for kind, c in rule.by_choice.items() if c is wanted)


def _result_dtype(entry: Entry, rule: TypeRule) -> str:
    """In words, from the samples' results: what is never said of some is not said of any."""
    if any(p.kind is Kind.DTYPE for p in entry.parameters):
        return "the dtype in the bracket"
    found = {result.dtype for sample, result in rule.results if not _kept(sample, result)}
    if not found:
        return "the dtype of the operands" if entry.keeps_dtype else ", ".join(map(str, _always(entry)))
    names = " ".join(sorted(map(str, found)))
    kinds = {k for s, r in rule.results if not _kept(s, r) for k in (s.operation.arguments().get("kind"),) if k}
    if rule.by_choice and kinds:
        return f"the dtype of the operands; {names} for {' '.join(f'`{k}`' for k in rule.by_choice if k in kinds)}"
    return names


def _kept(sample: Sample, result: Tensor) -> bool:
    return any(result.dtype is x.dtype and not (x.bound is None and result.bound is not None) for x in sample.operands)


def _always(entry: Entry) -> tuple[DType, ...]:
    """The dtype of an operation that no sample shows: positions."""
    return (DType.I64,)


def _positions(entry: Entry, rule: TypeRule) -> Iterator[str]:
    for number, size in rule.positions.items():
        name = entry.operand_names[number]
        yield (
            f"- `{name}` holds positions below `{size}` (in the first line of the table above). Numbers of type "
            f"`Idx[{size}]` need no check; other integers are checked when the program runs, and one that is out of "
            f"range ends it with an error that names `{entry.name}`, the place and the value."
        )
    counted = [(s, r) for s, r in rule.results if r.bound is not None and r.bound not in {x.bound for x in s.operands}]
    if counted:
        which = "The result's numbers" if len(counted) == len(rule.results) else "Numbers of an I64 result"
        yield f"- {which} are positions: `{counted[0][1].element}` in the first such line of the table above."


def _errors(entry: Entry, rule: TypeRule) -> Iterator[str]:
    for demand in rule.demands:
        if rule.by_choice and demand.text.startswith(f"`{entry.operand_names[0]}` is not "):
            yield f"- `K0303`: `{entry.operand_names[0]}` has a dtype that this kind does not take"
            continue
        yield f"- {', '.join(f'`{code}`' for code in demand.codes)}: {demand.text}"
    if any(p.kind in (Kind.AXIS, Kind.AXES, Kind.NEW_AXIS) for p in entry.parameters):
        yield "- `K0206`: there is no such axis (a negative one counts from the end)"
    elif any(p.bracket for p in entry.parameters):
        yield "- `K0206`: what stands in the bracket does not fit"
    yield "- `K0203`: too few or too many operands"
    if (declared := _declared(entry)) is not None and declared.may_end:
        yield "- when it runs, the program ends where a value cannot be taken"


def _declared(entry: Entry) -> Operation | type[Operation] | None:
    """The operation's class, or an instance of it, from which class variables can be read."""
    if isinstance(entry.build, type):
        return entry.build
    samples = entry.samples()
    return samples[0].operation if samples else None


def _derivative(entry: Entry) -> str:
    """What the declaration says of derivatives; nothing where it does not say."""
    declared = _declared(entry)
    if declared is None:
        return ""
    rule = type_rule(entry)
    results = [r for _, r in rule.results]
    if results and not any(r.dtype.is_float for r in results):
        return "None: the result is not made of floats, and has no tangent."
    if declared.flat:
        return "None: the result has no tangent."
    linear = {_kind(s): s.operation.linear for s, r in rule.results if r.dtype.is_float}
    if (linear and all(linear.values())) or (not linear and declared.linear is True):
        return "Linear: the tangent of the result is the operation itself, of the operands' tangents."
    if declared.multilinear:
        return "Linear in each operand: the tangent of the result is the sum over operands, each with its tangent."
    formulas = [f"- by `{by}`: `{formula}`" for by, formula in derivatives(entry).items()]
    if formulas:
        intro = "With `result` for what it gives (a tangent of 0 stays 0, whatever it is multiplied by):"
        return "\n".join([intro, "", *formulas])
    kind = declared if isinstance(declared, type) else type(declared)
    if kind.jvp is Operation.jvp:
        return ""
    own = inspect.cleandoc(kind.jvp.__doc__ or "Declared, for any order; at kinks as in PyTorch.")
    kinds = " ".join(f"`{k}`" for k, is_linear in linear.items() if is_linear)
    return f"{own} Linear for {kinds}." if kinds else own


def _kind(sample: Sample) -> str:
    return str(next(iter(sample.operation.arguments().values()), ""))
