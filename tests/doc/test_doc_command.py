"""`kina doc`: pages in the terminal, the list, and what is said where there is no page."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kina.cli.doc import command
from kina.doc.forms import all_forms
from kina.doc.modules import module_page
from kina.doc.pages import summary_of
from kina.doc.terminal import plain
from kina.ops import all_operations
from kina.source import Source

PROGRAM = """\
// Two functions.

/// Twice x. The rest of the comment.
///
/// ```kina
/// double nothing  // what its author says, and nobody runs
/// ```
let double [N] (x : F32[N]) : F32[N] = // why
  x + x

type Pair [N] = { a : F32[N], b : F32[N] }

test "doubling" = reduce[all, axis=0] (double [1.0] == [2.0])
"""


def doc(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments)


def test_the_list_has_every_operation_and_form_with_its_bare_name_in_front():
    lines = doc("--list").output.splitlines()
    names = [line.split()[0] for line in lines]
    assert names == doc("--list", "--names").output.split()
    assert set(names) == {e.name for e in all_operations()} | {f.name.replace(" ", "_") for f in all_forms()}
    (line,) = [line for line in lines if line.startswith("matmul ")]
    assert "[...B, M, K], [...B, K, N] -> [...B, M, N]" in line
    assert line.endswith("Matrix product over the last two axes")


def test_a_page_says_shapes_parameters_dtypes_errors_pytorch_and_an_example_with_its_value():
    text = doc("softmax").output
    for part in ("softmax[axis=...] x", "## Shapes", "## Parameters", "F64 F32 F16 BF16", "`K0303`"):
        assert part in text
    assert "x.softmax(dim=axis)" in text
    assert "softmax[axis=0] [0.0, 1.098612]\n```\n\n```text\n[0.25, 0.75]" in text


def test_a_page_of_a_reduction_tells_its_kinds_apart():
    text = doc("reduce").output
    assert "- `x`: Bool for `any` `all`" in text
    assert "I64 for `argmax` `argmin`" in text


@pytest.mark.parametrize(
    ("target", "title"),
    [
        ("let_dim", "let dim"), ("vmap", "map"), ("k0301", "K0301: shapes do not match"), ("std.nn", "std.nn"),
        ("std.nn.swiglu", "std.nn.swiglu"),
    ],
)  # fmt: skip
def test_forms_codes_and_the_standard_library_have_pages(target, title):
    assert doc(target).output.startswith(f"# {title}\n")


def test_a_file_has_a_page_with_its_types_as_written_its_comments_and_its_tests(tmp_path: Path):
    file = tmp_path / "twice.kina"
    file.write_text(PROGRAM)
    text = doc(str(file)).output
    assert "Two functions." in text and "type Pair [N] = { a : F32[N], b : F32[N] }" in text
    assert "double nothing  // what its author says" in text
    one = doc(f"{file}:double").output
    assert "let double [N] (x : F32[N]) : F32[N]\n```" in one
    assert "Twice x. The rest" in one and 'test "doubling"' in one


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "say what to show"), (("sofmax",), "did you mean softmax?"), (("cat",), "concat"), (("std.n",), "std.nn"),
        (("std.nn.swigluu",), "did you mean swiglu?"), (("none.kina",), "cannot read none.kina"),
        (("--list", "softmax"), "lists all"), (("--names",), "--list"), (("-o", "x", "softmax"), "softmax is none"),
    ],
)  # fmt: skip
def test_what_cannot_be_shown_is_misuse_and_says_what_to_do(arguments, said):
    result = doc(*arguments)
    assert result.exit_code == 2 and said in result.output


def test_a_file_with_errors_is_documented_as_far_as_it_can_be_read():
    found = module_page(Source("broken.kina", PROGRAM + "let = 3\n"))
    assert [m.name for m in found.members] == ["double", "Pair"]
    assert found.errors


def test_control_characters_of_a_file_do_not_reach_the_terminal():
    assert plain("a\x1b[31mb\x07\u009bc") == "a\ufffd[31mb\ufffd\ufffdc"


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("One. Two.", "One"), ("`a. B` is so. Two.", "`a. B` is so"), ("Maps: `[N] -> [M]`.", "Maps"),
        ("e to the x.", "e to the x"), ("1.5 of it", "1.5 of it"), ("One\nline.\n\nMore.", "One line"), ("", ""),
    ],
)  # fmt: skip
def test_a_summary_is_the_first_sentence_on_one_line(text, summary):
    assert summary_of(text) == summary
