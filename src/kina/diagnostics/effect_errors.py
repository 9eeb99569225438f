"""Errors about effects: K0230. A function's type says what calling it may do besides giving a result."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from kina.diagnostics.diagnostic import Diagnostic, Edit, Help, Label, Severity
from kina.source import Span

DOES: Mapping[str, str] = {
    "rand": "draws random numbers",
    "io": "talks to the host",
    "state": "changes state",
    "fail": "may fail",
    "diverge": "may run forever",
}
"""What a function with an effect does."""


def undeclared(
    name: str, name_span: Span, result: Span | None, declared: Iterable[str], missing: Mapping[str, tuple[Span, str]]
) -> Diagnostic:
    """A function does what its type does not say: `missing` has for each effect the call that brings it, and what is
    called. `result` is where the type of its result stands, after which its effects are written."""
    all_effects = sorted({*declared, *missing})
    what = " and ".join(DOES[effect] for effect in missing)
    calls = tuple(Label(span, f"{shown} {DOES[effect]}") for effect, (span, shown) in missing.items())
    return Diagnostic(
        "K0230", Severity.ERROR, f"`{name}` {what}, and its type does not say so", result or name_span,
        "no effect is written here" if not declared else f"only {_set(sorted(declared))} is written here", calls,
        help=tuple(_additions(result, all_effects)) if result is not None else (),
    )  # fmt: skip


def impure_argument(
    span: Span, wanted: object, allowed: Iterable[str], missing: Mapping[str, tuple[Span, str]]
) -> Diagnostic:
    """A function with more effects than the place where it stands takes."""
    what = " and ".join(DOES[effect] for effect in missing)
    allows = sorted(allowed)
    only = f"a function with no other effects than {_set(allows)}" if allows else "a pure function"
    calls = tuple(Label(at, f"{shown} {DOES[effect]}") for effect, (at, shown) in missing.items() if at != span)
    return Diagnostic(
        "K0230", Severity.ERROR, f"{only} is wanted here", span, f"this one {what}", calls,
        notes=(f"its type is to be {wanted}", f"a function that takes one with effects says so: {_example(missing)}"),
    )  # fmt: skip


def unhandled_draw(span: Span, shown: str) -> Diagnostic:
    """A test or a constant expression that draws without a seed."""
    return Diagnostic(
        "K0230", Severity.ERROR, "a test that draws random numbers has to say from which seed", span,
        f"{shown} draws random numbers",
        help=(Help("put the seed around it", (Edit(span, f"(with_seed 0 ({span.text}))"),)),),
    )  # fmt: skip


def seed_taken(span: Span, name: str) -> Diagnostic:
    return Diagnostic(
        "K0230", Severity.ERROR, f"`{name}` draws random numbers, so it has no parameter `seed` of its own", span,
        "call it something else",
        notes=(f"from Python the seed is given by this name: {name}(..., seed=0)",
               "a function that takes its seed itself is pure: with_seed k (...)"),
    )  # fmt: skip


def unknown_effect(span: Span, name: str, known: Iterable[str]) -> Diagnostic:
    return Diagnostic(
        "K0230", Severity.ERROR, f"`{name}` is not an effect", span, notes=(f"the effects are {', '.join(known)}",)
    )


def ref_escapes(span: Span, made: Span, *, captured: bool = False) -> Diagnostic:
    """A ref where a value is wanted, or after the body that made it."""
    what = "this function sees a ref that ends here" if captured else "this is a ref, and no value"
    return Diagnostic(
        "K0231", Severity.ERROR, "a ref may not leave the expression that made it", span, what,
        (Label(made, "made here"),) if made != span else (),
        help=() if captured else (Help("`!` gives what it holds", (Edit(span, f"!{span.text}"),)),),
    )  # fmt: skip


def not_a_ref(span: Span, what: str, got: object) -> Diagnostic:
    return Diagnostic(
        "K0232", Severity.ERROR, what, span, f"this is {got}",
        notes=("a name whose value changes is made by `let r = ref x in`",),
    )  # fmt: skip


def changed_by_condition(span: Span, name: str) -> Diagnostic:
    return Diagnostic("K0231", Severity.ERROR, f"the condition of a `while` may not change `{name}`", span,
                      "it is looked at, and the body changes things")  # fmt: skip


def _set(effects: Iterable[str]) -> str:
    return f"{{{', '.join(effects)}}}"


def _example(missing: Iterable[str]) -> str:
    return f"(f : A -> B ! {_set(sorted(missing))})"


def _additions(result: Span, effects: list[str]) -> Iterator[Help]:
    """Effects written after a result type, in the place of those that stand there already."""
    source, end = result.source, result.end
    message = f"say so: ! {_set(effects)}"
    written = re.compile(r"\s*!\s*\{[^}]*\}").match(source.text, end)
    at = Span(source, end, written.end() if written else end)
    yield Help(message, (Edit(at, f" ! {_set(effects)}"),))
    if "->" in result.text:
        start = Span(source, result.start, result.start)
        yield Help(message, (Edit(start, "("), Edit(at, f") ! {_set(effects)}")), guess=True)
