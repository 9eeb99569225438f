"""What a function may do besides giving a result: inferred inside, said by signatures, and nothing below core."""

from __future__ import annotations

import pytest

from kina.pipeline import check as check_source
from kina.pipeline import core_text
from kina.source import Source

ROOT = 'let root (x : F32) : F32 ! {fail} = let _ = check (x >= 0.0) "negative" in sqrt x\n'
HALVED = "let halved (x : F32) : F32 ! {diverge} = while s > 1.0 with s = x do s / 2.0\n"

ACCEPTED = {
    "a call of what has an effect, said": ROOT + "let f (x : F32) : F32 ! {fail} = root x",
    "more is said than is done": "let f (x : F32) : F32 ! {fail, rand, io} = x",
    "two effects": ROOT + HALVED + "let f (x : F32) : F32 ! {diverge, fail} = root (halved x)",
    "inferred without a result type": ROOT + "let g (x : F32) = root x\nlet f (x : F32) : F32 ! {fail} = g x",
    "inferred for a local function": ROOT + """
let f (x : F32) : F32 ! {fail} =
  let g (y : F32) = root y + 1.0 in
  g x
""",
    "a local function that is never called does nothing": ROOT + """
let f (x : F32) : F32 =
  let g (y : F32) = root y + 1.0 in
  x
""",
    "a partial application does nothing yet": """
let safe (a : F32) (b : F32) : F32 ! {fail} = let _ = check (a < b) "order" in b
let f (x : F32) : F32 = let g = safe x in x
""",
    "a value whose effects are said": ROOT + "let f (x : F32) : F32 ! {fail} = let y : F32 ! {fail} = root x in y",
    "a pure function where an effectful one is wanted": """
let twice (g : F32 -> F32 ! {fail}) (x : F32) : F32 ! {fail} = g (g x)
let f (x : F32) : F32 ! {fail} = twice (fun y -> y + 1.0) x
""",
    "an effectful function where one is wanted": ROOT + """
let twice (g : F32 -> F32 ! {fail}) (x : F32) : F32 ! {fail} = g (g x)
let f (x : F32) : F32 ! {fail} = twice root x
""",
    "what the function of a map does is done where it is mapped": ROOT + """
let f [N] (x : F32[N]) : F32[N] ! {fail} = map root x
""",
    "a function of two arguments": """
let both (g : F32 -> F32 -> F32 ! {fail}) (x : F32) : F32 ! {fail} = g x x
let f (x : F32) : F32 ! {fail} = both (fun a b -> let _ = check (a == b) "equal" in a) x
""",
    "a generic function": """
let whole [T : Float, ...S] (x : T[...S]) : T[...S] ! {fail} =
  let _ = check (reduce[all, axes=all] (x == x)) "NaN" in x
let f [N] (x : F32[N]) : F32[N] ! {fail} = whole x
""",
    "a bounded while ends": "let f (x : F32) : F32 =\n  let [n] y = while [i < 9] s > 1.0 with s = x do s / 2.0 in y",
    "a test may fail": ROOT + 'test "t" = root 4.0 == 2.0',
}

REFUSED = {
    "check": ('let f (x : F32) : «F32» = let _ = check (x > 0.0) "no" in x', " ! {fail}"),
    "an unbounded while": ("let f (x : F32) : «F32» = while s > 1.0 with s = x do s / 2.0", " ! {diverge}"),
    "a call": (ROOT + "let f (x : F32) : «F32» = root x + 1.0", " ! {fail}"),
    "only one of two": (ROOT + HALVED + "let f (x : F32) : «F32» ! {fail} = root (halved x)", " ! {diverge, fail}"),
    "what is inferred of another": (ROOT + "let g (x : F32) = root x\nlet f (x : F32) : «F32» = g x", " ! {fail}"),
    "what another says, though it does not": (
        "let g (x : F32) : F32 ! {rand} = x\nlet f (x : F32) : «F32» = g x", " ! {rand}",
    ),
    "in the function of a map": (ROOT + "let f [N] (x : F32[N]) : «F32[N]» = map root x", " ! {fail}"),
    "in a lambda": (
        "let f [N] (x : F32[N]) : «F32[N]» = map (fun y -> let _ = check (y > 0.0) \"no\" in y) x", " ! {fail}",
    ),
    "in a loop": (ROOT + "let f [N] (x : F32) : «F32» = for i < N with s = x do root s", " ! {fail}"),
    "in a branch": (ROOT + "let f (x : F32) : «F32» = if x > 1.0 then root x else x", " ! {fail}"),
    "a local function whose type is written": (
        ROOT + "let f (x : F32) : F32 = let g (y : F32) : «F32» ! {} = root y in x", " ! {fail}",
    ),
    "an effectful function parameter": (
        "let f (g : F32 -> F32 ! {io}) (x : F32) : «F32» = g x", " ! {io}",
    ),
    "one that takes effectful functions": (
        "let t (g : F32 -> F32 ! {fail}) (x : F32) : F32 ! {fail} = g x\n"
        "let f (x : F32) : «F32» = t (fun y -> y) x", " ! {fail}",
    ),
    "a generic function": (
        'let f [T : Float, N] (x : T[N]) : «T[N]» = let _ = check (reduce[all, axis=0] (x == x)) "NaN" in x',
        " ! {fail}",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ACCEPTED)
def test_effects_that_are_said_are_accepted(name, check):
    check(ACCEPTED[name]).accepts()


@pytest.mark.parametrize("name", REFUSED)
def test_an_effect_that_a_type_does_not_say_is_an_error_there_whose_help_says_it(name, check):
    marked, added = REFUSED[name]
    before, _, rest = marked.partition("«")
    place, _, after = rest.partition("»")
    text = before + place + after
    checked = check_source(Source("program.kina", text))
    (error,) = checked.diagnostics
    assert (error.code, error.span.text, error.span.start) == ("K0230", place, len(before))
    assert error.labels, "the call that brings it is shown"
    (help_,) = error.help
    assert [edit.text for edit in help_.edits] == [added]
    edit = help_.edits[0]
    mended = text[: edit.span.start] + edit.text + text[edit.span.end :]
    check(mended).accepts()


def test_a_function_with_effects_is_refused_where_a_pure_one_is_wanted(check):
    text = ROOT + "let t (g : F32 -> F32) (x : F32) : F32 = g x\nlet f (x : F32) : F32 ! {fail} = t root x"
    check(text).rejects("K0230", "a pure function is wanted here")
    text = ROOT + "let f (x : F32) : F32 ! {fail} = let g : F32 -> F32 = root in g x"
    check(text).rejects("K0230", "a pure function is wanted here")


def test_an_effect_that_there_is_not_is_an_error(check):
    check("let f (x : F32) : F32 ! {random} = x").rejects("K0230", "`random` is not an effect")
    check("let f (g : F32 -> F32 ! {exn}) (x : F32) : F32 = x").rejects("K0230", "rand, io, state, fail, diverge")


def test_effects_stand_in_signatures():
    checked = check_source(Source("f.kina", ROOT + HALVED + "let g (x : F32) = root (halved x)"))
    shown = [str(s) for s in checked.elaboration.signatures.values()]
    assert [s.rpartition("]]")[2].partition("]")[2] or s.rpartition("]")[2] for s in shown] == [
        " ! {fail}", " ! {diverge}", " ! {diverge, fail}",
    ]  # fmt: skip


def test_core_that_may_fail_or_diverge_prints_as_kina_that_says_so():
    g = "let g (x : F32) : F32 ! {fail, diverge} = root (halved x)"
    checked = check_source(Source("f.kina", ROOT + HALVED + g))
    text = core_text(checked.function("g"))
    again = check_source(Source("core.kina", text), strict=True)
    assert again.ok, [d.message for d in again.diagnostics]
    assert "! {diverge, fail} =" in text
    assert core_text(again.function("g")) == text
