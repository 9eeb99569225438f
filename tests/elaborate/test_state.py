"""Refs: programs that change them are the pure programs that one would write by hand, and core has no state."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kina.core.ir import For, statements_within
from kina.host.module import make_module
from kina.pipeline import check as check_source
from kina.pipeline import core_text
from kina.source import Source

PAIRS = {
    "in a line": (
        "let f (x : F32) : F32 = let r = ref x in let _ = r := !r * 2.0 in let _ = r := !r + x in !r",
        "let f (x : F32) : F32 = let a = x * 2.0 in let b = a + x in b",
    ),
    "in a branch": (
        "let f (x : F32) : F32 = let r = ref x in let _ = if x > 0.0 then r := !r * 2.0 else () in !r + 1.0",
        "let f (x : F32) : F32 = let r = if x > 0.0 then x * 2.0 else x in r + 1.0",
    ),
    "in both branches, beside a value": (
        "let f (x : F32) : F32 = let r = ref x in let s = ref 1.0 in\n"
        "  let y = if x > 0.0 then let _ = r := !r * 2.0 in x + 1.0 else let _ = s := 3.0 in x - 1.0 in y * !r * !s",
        "let f (x : F32) : F32 =\n"
        "  let (y, r, s) = if x > 0.0 then (x + 1.0, x * 2.0, 1.0) else (x - 1.0, x, 3.0) in y * r * s",
    ),
    "in a comprehension": (
        "let f (x : F32) : F32 = let r = ref x in let _ = for i < 5 yield r := !r * 0.5 + x in !r",
        "let f (x : F32) : F32 = for i < 5 with r = x do r * 0.5 + x",
    ),
    "in a loop with a state and what it yields": (
        "let f (x : F32) : (F32, F32[4], F32) = let r = ref 1.0 in\n"
        "  let (s, ys) = for i < 4 with s = x do let _ = r := !r + s in s * 0.5 yield !r in (s, ys, !r)",
        "let f (x : F32) : (F32, F32[4], F32) =\n"
        "  let ((s, r), ys) = for i < 4 with (s : F32, r : F32) = (x, 1.0) do\n"
        "    let r = r + s in (s * 0.5, r) yield r in (s, ys, r)",
    ),
    "in a branch in a loop in a loop": (
        "let f (x : F32) : F32 = let r = ref 0.0 in\n"
        "  let _ = for i < 3 yield for j < 4 yield if i < j then r := !r + x else () in !r",
        "let f (x : F32) : F32 = for i < 3 with r = 0.0 do for j < 4 with q = r do if i < j then q + x else q",
    ),
    "in a while": (
        "let f (x : F32) : F32 ! {diverge} = let n = ref 0.0 in\n"
        "  let y = while s > 1.0 with s = x do let _ = n := !n + 1.0 in s * 0.5 in y + !n",
        "let f (x : F32) : F32 ! {diverge} =\n"
        "  let (y, n) = while s > 1.0 with (s : F32, n : F32) = (x, 0.0) do (s * 0.5, n + 1.0) in y + n",
    ),
    "read by the condition of a while": (
        "let f (x : F32) : F32 = let r = ref x in\n"
        "  let [n] y = while [i < 50] !r > 1.0 with s = 0.0 do let _ = r := !r * 0.5 in s + 1.0 in y + !r",
        "let f (x : F32) : F32 =\n"
        "  let [n] (y, r) = while [i < 50] r > 1.0 with (s : F32, r : F32) = (0.0, x) do (s + 1.0, r * 0.5) in y + r",
    ),
    "by a local function": (
        "let f (x : F32) : F32 = let r = ref x in let add (y : F32) = r := !r + y in\n"
        "  let _ = add 1.0 in let _ = for i < 3 yield add x in !r",
        "let f (x : F32) : F32 = for i < 3 with r = x + 1.0 do r + x",
    ),
    "by the function of a map": (
        "let f (x : F32) : (F32[3], F32) = let r = ref x in\n"
        "  let y = map (fun v -> let _ = r := !r + v in !r) [1.0, 2.0, 3.0] in (y, !r)",
        "let f (x : F32) : (F32[3], F32) = let y = cumsum[axis=0] [1.0, 2.0, 3.0] + x in (y, y[2])",
    ),
    "by the function of a fold": (
        "let f (x : F32) : F32 = let r = ref x in let g (a : F32) (v : F32) = let _ = r := !r + a in a + v in\n"
        "  let y = fold g 0.0 [1.0, 2.0, 3.0] in y + !r",
        "let f (x : F32) : F32 = 6.0 + (x + 1.0 + 3.0)",
    ),
    "by a function that is given to one": (
        "let twice (g : F32 -> F32 ! {state}) (x : F32) : F32 ! {state} = g (g x)\n"
        "let f (x : F32) : F32 = let r = ref 0.0 in\n"
        "  let y = twice (fun v -> let _ = r := !r + v in v * 2.0) x in y + !r",
        "let f (x : F32) : F32 = x * 2.0 * 2.0 + (x + x * 2.0)",
    ),
    "of a tuple": (
        "let f (x : F32) : F32 = let r = ref (x, 1.0) in\n"
        "  let _ = for i < 3 yield let (a, b) = !r in r := (b, a + b) in let (a, b) = !r in a + b",
        "let f (x : F32) : F32 =\n"
        "  let (a, b) = for i < 3 with (a : F32, b : F32) = (x, 1.0) do (b, a + b) in a + b",
    ),
    "a ref made in each step": (
        "let f (x : F32) : F32[3] = for i < 3 yield let r = ref x in let _ = r := !r + 1.0 in !r",
        "let f (x : F32) : F32[3] = for i < 3 yield x + 1.0",
    ),
    "one ref behind another": (
        "let f (x : F32) : F32 = let r = ref x in let s = ref !r in let _ = r := 5.0 in !s * !r",
        "let f (x : F32) : F32 = x * 5.0",
    ),
}


def module_of(text: str):
    checked = check_source(Source("f.kina", text))
    assert checked.ok, [d.message for d in checked.diagnostics]
    return checked, make_module(checked)


def flat(result) -> list[np.ndarray]:
    return [np.asarray(v) for v in (result if isinstance(result, tuple) else (result,))]


def renumbered(text: str) -> str:
    """Values without a name of their own, numbered as they come: checking a local function takes some numbers."""
    found: dict[str, str] = {}
    return re.sub(r"\bt\d+\b(?!')", lambda m: found.setdefault(m[0], f"t{len(found)}"), text)


@pytest.mark.parametrize("name", PAIRS)
def test_a_program_with_refs_is_the_pure_one_in_reference_and_native_code(name):
    (checked, module), (_, pure) = map(module_of, PAIRS[name])
    for x in (5.0, -3.0, 0.0):
        want = flat(pure.f.reference(np.float32(x)))
        for run in (module.f.reference, module.f):
            for got, wanted in zip(flat(run(np.float32(x))), want, strict=True):
                np.testing.assert_allclose(got, wanted, rtol=1e-6)
    again = check_source(Source("core.kina", core_text(checked.function("f"))), strict=True)
    assert again.ok, [d.message for d in again.diagnostics]
    assert renumbered(core_text(again.function("f"))) == renumbered(core_text(checked.function("f")))


def test_a_loop_that_changes_no_ref_has_no_states_and_stays_parallel():
    text = "let f (x : F32) : F32[3] = let r = ref x in let _ = r := 2.0 in for i < 3 yield !r * x"
    (loop,) = [s for s in statements_within(module_of(text)[0].function("f").statements) if isinstance(s, For)]
    assert loop.states == ()


# ---------------------------------------------------------------- random programs


def steps_of(depth: int):
    """What a random program does to its refs `a` and `b`."""
    assign = st.tuples(st.just("set"), st.sampled_from("ab"), st.sampled_from("ab"), st.integers(-2, 2))
    if depth == 0:
        return st.lists(assign, min_size=1, max_size=3)
    inner = steps_of(depth - 1)
    step = assign | st.tuples(st.just("for"), st.integers(0, 3), inner) | st.tuples(
        st.just("if"), st.sampled_from("ab"), inner, inner
    )
    return st.lists(step, min_size=1, max_size=3)


def text_of(steps, index: list[int]) -> str:
    parts = []
    for step in steps:
        match step:
            case ("set", target, source, n):
                parts.append(f"{target} := !{source} * 0.5 + !{target} + {float(n)}")
            case ("for", count, inner):
                index[0] += 1
                parts.append(f"(for i{index[0]} < {count} yield {text_of(inner, index)})")
            case ("if", ref, then, otherwise):
                first, second = text_of(then, index), text_of(otherwise, index)
                parts.append(f"(if !{ref} > 0.5 then ({first}) else ({second}))")
    return "".join(f"let _ = {part} in " for part in parts) + "()"


def run(steps, held) -> None:
    for step in steps:
        match step:
            case ("set", target, source, n):
                held[target] = held[source] * np.float32(0.5) + held[target] + np.float32(n)
            case ("for", count, inner):
                for _ in range(count):
                    run(inner, held)
            case ("if", ref, then, otherwise):
                run(then if held[ref] > 0.5 else otherwise, held)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(steps_of(2), st.sampled_from([0.25, -1.0, 3.0]))
def test_random_programs_with_refs_do_what_python_does(steps, x):
    body = text_of(steps, [0])
    text = f"let f (x : F32) : (F32, F32) = let a = ref x in let b = ref 1.0 in let _ = ({body}) in (!a, !b)"
    held = {"a": np.float32(x), "b": np.float32(1.0)}
    run(steps, held)
    got = module_of(text)[1].f.reference(np.float32(x))
    np.testing.assert_allclose([float(v) for v in got], [float(held["a"]), float(held["b"])], rtol=1e-4, atol=1e-5)


# ---------------------------------------------------------------- what is refused

REFUSED = {
    "a ref that is returned": ("let f (x : F32) : F32 = let r = ref x in r", "K0231", "may not leave"),
    "a ref that is inferred to be returned": ("let f (x : F32) = let r = ref x in r", "K0231", "may not leave"),
    "a ref in a tuple": ("let f (x : F32) : (F32, F32) = let r = ref x in (r, x)", "K0231", "may not leave"),
    "a ref as an operand": ("let f (x : F32) : F32 = let r = ref x in r + 1.0", "K0231", "may not leave"),
    "a ref in a state": (
        "let f (x : F32) : F32 = let r = ref x in for i < 3 with s = r do s", "K0231", "may not leave",
    ),
    "a function that sees one is returned": (
        "let f (x : F32) : F32 -> F32 = let r = ref x in fun y -> !r + y", "K0231", "sees a ref",
    ),
    "a local function that outlives it": (
        "let f (x : F32) : F32 = let g = (let r = ref x in fun (y : F32) -> !r + y) in g x", "K0231", "sees a ref",
    ),
    "another type": (
        "let f [N] (x : F32[N]) : F32 = let r = ref 0.0 in let _ = r := x in !r", "K0302", "`r` is set to",
    ),
    "another size": (
        "let f [N] (x : F32[N]) : F32[N] = let r = ref x in let _ = r := concat[axis=0] x x in !r",
        "K0302", "`r` keeps",
    ),
    "what is no ref, read": ("let f (x : F32) : F32 = !x", "K0232", "reads a ref"),
    "what is no ref, set": ("let f (x : F32) : F32 = let _ = x := 1.0 in x", "K0232", "sets a ref"),
    "a ref called": ("let f (x : F32) : F32 = let r = ref x in r 1.0", "K0203", "not a function"),
    "a condition that changes one": (
        "let f (x : F32) : F32 ! {diverge} = let r = ref x in\n"
        "  while (let _ = r := !r - 1.0 in !r > 0.0) with s = x do s", "K0231", "may not change `r`",
    ),
    "a function that changes one where a pure one is wanted": (
        "let t (g : F32 -> F32) (x : F32) : F32 = g x\n"
        "let f (x : F32) : F32 = let r = ref x in t (fun y -> let _ = r := y in y) x", "K0230", "pure function",
    ),
    "a local function that says it is pure": (
        "let f (x : F32) : F32 = let r = ref x in let g (y : F32) : F32 ! {} = !r + y in g x", "K0230", "changes state",
    ),
    "a parameter that changes state, not said": (
        "let f (g : F32 -> F32 ! {state}) (x : F32) : F32 = g x", "K0230", "changes state",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_refs_may_not_do_is_an_error_that_says_so(name, check):
    text, code, said = REFUSED[name]
    check(text).rejects(code, said)


def test_a_ref_where_its_value_is_meant_is_mended_by_reading_it():
    checked = check_source(Source("f.kina", "let f (x : F32) : F32 = let r = ref x in r + 1.0"))
    (error,) = checked.diagnostics
    assert [edit.text for edit in error.help[0].edits] == ["!r"]
