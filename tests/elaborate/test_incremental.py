"""A check after an edit finds what a fresh check finds, and checks no more than the edit can have changed."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kina.core.printer import print_program
from kina.diagnostics.render import render
from kina.elaborate import incremental
from kina.pipeline import Checked, check
from kina.source import Source

# Each declaration in a few versions: right and wrong ones, other heads, other bodies.
VERSIONS = [
    ["type Layer [D] = { norm : F32[D] }", "type Layer [D] = { norm : F32[D], bias : F32[D] }"],
    [
        "let scale [N] (x : F32[N]) (s : F32) : F32[N] = x * s",
        "let scale [N] (x : F32[N]) (s : F32) : F32[N] = s * x",
        "let scale [N] (x : F32[N]) (s : F32) : F32[N] = s * y",
        "let scale [N] (x : F32[N]) (s : F32) : F32[N] requires (N > 0) = s * x",
        "/// Documented.\nlet scale [N] (x : F32[N]) (s : F32) : F32[N] = x * s",
        "let scale [N] (x : F32[N]) : F32[N] = x",
        "",
    ],
    [
        "let soft [T : Float, ...S] (x : T[...S]) : T[...S] = log1p (exp x)",
        "let soft [T : Float, ...S] (x : T[...S]) : T[...S] = exp x",
        "let soft [T : Float, ...S] (x : T[...S]) : T[...S] = exp z",
        "",
    ],
    [
        "let twice [N] (f : F32[N] -> F32[N]) (x : F32[N]) : F32[N] = f (f x)",
        "let twice [N] (f : F32[N] -> F32[N]) (x : F32[N]) : F32[N] = f x",
    ],
    ["let inferred [N] (x : F32[N]) = x + 1.0", "let inferred [N] (x : F32[N]) = reduce[sum, axis=0] x"],
    [
        "let use [N] (x : F32[N]) : F32[N] = scale (soft x) 2.0",
        "let use [N] (x : F32[N]) : F32[N] =\n  let assert (N < 100) in\n  scale (soft x) 2.0",
        "let use [N] (x : F32[N]) : F32[N] = twice soft x",
    ],
    ["let more [N] (x : F32[N]) : F32[N] = twice use (inferred x)", "let more [N] (x : F32[N]) : F32[N] = use x"],
    [
        "let layer [N, D] (l : Layer[D]) (x : F32[N, D]) : F32[N, D] = x * l.norm",
        "let layer [N, D] (l : Layer[D]) (x : F32[N, D]) : F32[N, D] = x * l.bias",
        "let layer [N, D] (l : Layer[D]) (x : F32[N, D]) : F32[N] = x",
        "let layer [N, D (l : Layer[D]) = x",
    ],
    ["let last [N] (x : F32[N]) : F32[N] = for i < 3 with y : F32[N] = x do more y", "let last (x : F32) : F32 = x"],
]


def text_of(choices: list[int], gaps: list[int]) -> str:
    parts = [versions[c % len(versions)] for versions, c in zip(VERSIONS, choices, strict=True)]
    return "".join(part + "\n" * (gap + 1) for part, gap in zip(parts, gaps, strict=True))


def everything(checked: Checked) -> str:
    found = checked.elaboration
    core = [print_program(function) for function in found.program.functions.values()]
    places = [str(s.span) for f in found.program.functions.values() for s in f.statements]
    obligations = sorted(f"{o.function} {o.span!r} {o.proposition} {o.why} {o.status_text}" for o in found.obligations)
    signatures = sorted(f"{name} {signature}" for name, signature in found.signatures.items())
    return "\n".join([render(checked.diagnostics), *core, *places, *obligations, *signatures, *sorted(found.generic)])


edits = st.tuples(
    st.lists(st.integers(0, 6), min_size=len(VERSIONS), max_size=len(VERSIONS)),
    st.lists(st.integers(0, 2), min_size=len(VERSIONS), max_size=len(VERSIONS)),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(edits, min_size=2, max_size=4))
def test_a_check_after_edits_finds_what_a_fresh_one_finds(steps):
    checked = None
    for choices, gaps in steps:
        source = Source("test.kina", text_of(choices, gaps))
        checked = check(source, earlier=checked)
        assert everything(checked) == everything(check(source))


@settings(max_examples=60, deadline=None)
@given(edits, st.integers(0, len(VERSIONS) - 1), st.integers(0, 6))
def test_one_edit_is_enough_to_tell(start, place, version):
    choices, gaps = start
    before = check(Source("test.kina", text_of(choices, gaps)))
    source = Source("test.kina", text_of([*choices[:place], version, *choices[place + 1 :]], gaps))
    assert everything(check(source, earlier=before)) == everything(check(source))


def checked_again(before: str, after: str) -> list[str]:
    """The functions that are checked after an edit."""
    names = []
    real = incremental.elaborate_declaration

    def spy(module, declaration):
        names.append(declaration.name)
        real(module, declaration)

    earlier = check(Source("test.kina", before))
    with (
        patch("kina.elaborate.incremental.elaborate_declaration", spy),
        patch("kina.elaborate.functions.elaborate_declaration", spy),
        patch("kina.elaborate.elaborator.elaborate_declaration", spy),
    ):
        check(Source("test.kina", after), earlier=earlier)
    return sorted(names)


TEXT = """
let a [N] (x : F32[N]) : F32[N] = x + 1.0

let b [N] (x : F32[N]) : F32[N] = a x

let c [N] (x : F32[N]) : F32[N] = b x

let d [N] (x : F32[N]) : F32[N] = x
"""


@pytest.mark.parametrize(
    ("old", "new", "again"),
    [
        ("x + 1.0", "x + 2.0", ["a"]),
        ("let a [N]", "\n// a comment\nlet a [N]", []),
        ("let a [N] (x : F32[N])", "let a [N] requires (N < 9) (x : F32[N])", ["a", "b", "c"]),
        ("= b x", "= b (b x)", ["c"]),
        ("let d", "type T = F32\nlet d", ["a", "b", "c", "d"]),
        ("let d [N]", "let a2 [N] (x : F32[N]) : F32[N] = x\nlet d [N]", ["a2"]),
        ("let a [N]", "let aa [N]", ["aa", "b", "c"]),
    ],
)
def test_only_what_an_edit_can_have_changed_is_checked_again(old, new, again):
    assert checked_again(TEXT, TEXT.replace(old, new, 1)) == again


def test_an_imported_module_that_did_not_change_is_not_checked_again(tmp_path):
    (tmp_path / "lib.kina").write_text("let a (x : F32) : F32 = x + 1.0\n")

    def source(text):
        return Source(str(tmp_path / "main.kina"), text, str(tmp_path))

    text = 'import "lib.kina" as lib\nlet f (x : F32) : F32 = lib.a x\nlet g (x : F32) : F32 = x\n'
    first = check(source(text))
    second = check(source(text.replace("= x\n", "= -x\n")), earlier=first)
    modules = [c.elaboration.state.context.modules["lib"] for c in (first, second)]
    assert modules[0] is modules[1]
    (tmp_path / "lib.kina").write_text("let a (x : F64) : F64 = x + 1.0\n")
    third = check(source(text), earlier=second)
    assert [d.code for d in third.diagnostics] == ["K0302"]
