"""Errors about shapes, dtypes and proofs: K03xx. One constructor a code; the page of each is in `pages/`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kina.diagnostics.diagnostic import Diagnostic, Help, Label, Severity
from kina.diagnostics.shapes import Row, line_up
from kina.source import Span

Sizes = Mapping[str, int]


def _error(code: str, message: str, span: Span, label: str = "", **more: object) -> Diagnostic:
    return Diagnostic(code, Severity.ERROR, message, span, label, **more)  # type: ignore[arg-type]


def _note(code: str, message: str, span: Span, label: str = "", **more: object) -> Diagnostic:
    return Diagnostic(code, Severity.NOTE, message, span, label, **more)  # type: ignore[arg-type]


def sizes_text(sizes: Sizes) -> str:
    """`S = 2, D_h = 1`."""
    return ", ".join(f"{name} = {size}" for name, size in sizes.items())


def _facts_note(facts: Sequence[object]) -> tuple[str, ...]:
    return (f"known here: {', '.join(map(str, dict.fromkeys(map(str, facts))))}",) if facts else ()


def _difference(left: object, right: object, sizes: Sizes | None) -> str:
    """How two sizes relate: shown to differ, or only not shown to be equal."""
    if sizes is None:
        return f"{left} = {right} can be neither proved nor refuted"
    return f"they differ for {sizes_text(sizes)}" if sizes else "they always differ"


# ---------------------------------------------------------------- K0301 shapes do not match


def sizes_differ(
    span: Span, *, shown: str, symbol: str, rows: Sequence[Row], places: Sequence[tuple[Span, object]],
    clash: tuple[object, object], counterexample: Sizes | None, facts: Sequence[object], help: tuple[Help, ...],
    binders: tuple[Label, ...] = (),
) -> Diagnostic:  # fmt: skip
    """Two axes that an operation wants equal are not: `matmul q k`."""
    left, right = clash
    return _error(
        "K0301", "shapes do not match", span, f"{symbol} would have to be both {left} and {right}",
        labels=(*binders, *(Label(place, f"this is {type_}") for place, type_ in places)),
        notes=(line_up(rows), _difference(left, right, counterexample), *_facts_note(facts)),
        help=help, counterexample=counterexample,
    )  # fmt: skip


def operands_do_not_broadcast(
    span: Span, *, shown: str, rows: Sequence[Row], places: Sequence[tuple[Span, object]],
    counterexample: Sizes | None, facts: Sequence[object], help: tuple[Help, ...], binders: tuple[Label, ...] = (),
) -> Diagnostic:  # fmt: skip
    """Neither operand of an elementwise operation fits the other."""
    why = "one operand may stretch to the shape of the other; here neither fits"
    differs = () if counterexample is None else (_difference(None, None, counterexample),)
    return _error(
        "K0301", "shapes do not match", span, f"`{shown}` needs one shape",
        labels=(*binders, *(Label(place, f"this is {type_}") for place, type_ in places)),
        notes=(line_up(rows), why, *differs, *_facts_note(facts)),
        help=help, counterexample=counterexample,
    )  # fmt: skip


def type_mismatch(
    span: Span, *, what: str, wanted: object, got: object, rows: Sequence[Row] = (), declared: Span | None = None,
    clash: tuple[object, object] | None = None, counterexample: Sizes | None = None, origin: Sequence[str] = (),
    facts: Sequence[object] = (), help: tuple[Help, ...] = (), binders: tuple[Label, ...] = (),
) -> Diagnostic:  # fmt: skip
    """A value of one type stands where another is wanted: a result, an argument, an annotation."""
    lined = (line_up(rows),) if rows else ()
    relation = (_difference(*clash, counterexample),) if clash else ()
    return _error(
        "K0302", f"{what} should be {wanted}, and is {got}", span, f"this is {got}",
        labels=(*binders, *((Label(declared, "declared here"),) if declared else ())),
        notes=(*lined, *relation, *origin, *_facts_note(facts)), help=help, counterexample=counterexample,
    )  # fmt: skip


# ---------------------------------------------------------------- K0303 dtypes, K0304 ranks


def dtypes_differ(
    span: Span, shown: str, left: object, right: object, first: Span, second: Span, help: tuple[Help, ...]
) -> Diagnostic:
    return _error(
        "K0303", f"`{shown}` needs operands of one dtype", span, f"{left} and {right} do not mix",
        labels=(Label(first, f"this is {left}"), Label(second, f"this is {right}")),
        help=help,
    )  # fmt: skip


def wrong_dtype(span: Span, shown: str, wanted: str, got: object, help: tuple[Help, ...] = ()) -> Diagnostic:
    members = {
        "Float": "F64 F32 F16 BF16", "Int": "I64 I32 I16 I8 U8", "Num": "a float or integer", "Bool": "Bool"
    }[wanted]  # fmt: skip
    return _error(
        "K0303", f"`{shown}` is not defined for {got}", span, f"this is {got}", notes=(f"it takes {members}",),
        help=help,
    )  # fmt: skip


def wrong_class(span: Span, name: str, binder: str, wanted: str, got: object) -> Diagnostic:
    label = f"{binder} would be {got}, and has to be {wanted}"
    return _error("K0303", f"`{name}` is not defined for {got}", span, label)


def rank_too_small(
    span: Span, shown: str, operand: str, at_least: int, type_: object, help: tuple[Help, ...] = ()
) -> Diagnostic:
    message = f"`{shown}` needs {operand} to have at least {at_least} axes"
    return _error("K0304", message, span, f"this is {type_}", help=help)


def ranks_differ(
    span: Span, shown: str, first: tuple[Span, object], second: tuple[Span, object], help: tuple[Help, ...] = ()
) -> Diagnostic:
    return _error(
        "K0304", f"`{shown}` needs operands with the same number of axes", span,
        labels=tuple(Label(place, f"this is {type_}") for place, type_ in (first, second)), help=help,
    )  # fmt: skip


# ---------------------------------------------------------------- K0305, K0306 obligations


def obligation_refuted(
    span: Span, goal: object, why: str, sizes: Sizes, facts: Sequence[object], help: tuple[Help, ...]
) -> Diagnostic:
    """`sizes` is empty where the goal has no variables: it says of numbers what is false."""
    fails = (f"it fails for {sizes_text(sizes)}",) if sizes else ()
    return _error(
        "K0305", f"{goal} {'does not always hold' if sizes else 'never holds'}", span, why,
        notes=(*fails, *_facts_note(facts)), help=help, counterexample=sizes,
    )  # fmt: skip


def obligation_undecided(
    span: Span, goal: object, why: str, facts: Sequence[object], help: tuple[Help, ...]
) -> Diagnostic:
    advice = Help(f"or check it when the program runs: let assert ({goal}) in")
    return _error(
        "K0306", f"{goal} cannot be decided", span, why,
        notes=("no proof was found, and no sizes that break it", *_facts_note(facts)), help=(*help, advice),
    )  # fmt: skip


# ---------------------------------------------------------------- K0307 reshape


def reshape_mixes_axes(
    span: Span, operand: Span, rows: Sequence[Row], reason: str, help: tuple[Help, ...]
) -> Diagnostic:
    return _error(
        "K0307", "this reshape would mix axes", span, reason,
        labels=(Label(operand, "the operand"),) if operand != span else (),
        notes=(
            line_up(rows, from_right=False),
            "reshape only merges neighbouring axes and splits an axis into neighbours;\n"
            "the volume is right, the order is not",
        ),
        help=help,
    )  # fmt: skip


def reshape_changes_volume(
    span: Span, rows: Sequence[Row], volumes: tuple[object, object], sizes: Sizes | None, facts: Sequence[object],
    help: tuple[Help, ...],
) -> Diagnostic:  # fmt: skip
    left, right = volumes
    return _error(
        "K0308", "reshape has to keep the number of elements", span, f"{left} elements cannot become {right}",
        notes=(line_up(rows, from_right=False), _difference(left, right, sizes), *_facts_note(facts)),
        help=help, counterexample=sizes,
    )  # fmt: skip


def reshape_undecided(
    span: Span, rows: Sequence[Row], equation: object, facts: Sequence[object], help: tuple[Help, ...]
) -> Diagnostic:
    advice = Help(f"or check it when the program runs: let assert ({equation}) in")
    return _error(
        "K0306", f"whether this reshape fits cannot be decided: it needs {equation}", span,
        notes=(line_up(rows, from_right=False), *_facts_note(facts)), help=(*help, advice),
    )  # fmt: skip


# ---------------------------------------------------------------- K0309 inference


def cannot_infer(span: Span, function: str, names: Sequence[str], order: Sequence[str]) -> Diagnostic:
    listed = ", ".join(names)
    return _error(
        "K0309", f"`{function}`: the arguments do not determine {listed}", span,
        help=(Help(f"give the dimensions in order: {function}[{', '.join(order)}]"),),
    )  # fmt: skip


# ---------------------------------------------------------------- K0310 to K0312 assertions


def assertion_false(span: Span, goal: object, sizes: Sizes, facts: Sequence[object]) -> Diagnostic:
    fails = f"it fails for {sizes_text(sizes)}" if sizes else "it never holds"
    return _error(
        "K0310", f"the assertion {goal} is false", span, fails, notes=_facts_note(facts), counterexample=sizes
    )


def assertion_redundant(span: Span, goal: object, how: str) -> Diagnostic:
    return _note("K0311", f"{goal} is proved ({how}); the assertion is redundant", span, "costs nothing, and can go")


def assertion_at_run_time(span: Span, goal: object) -> Diagnostic:
    return _note("K0312", f"{goal} is neither proved nor refuted", span, "checked when the program runs")
