"""Examples: programs with the value they give behind them, computed by the reference interpreter.

An example is an expression, `flip[axis=0] [1, 2]  // [2, 1]`, or declarations of which the last, `let example = ...`,
ends in such a comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from kina import pipeline
from kina.core.ir import Stack, Struct, Tree, Value
from kina.diagnostics import KinaError
from kina.doc.pages import Page
from kina.host.reference import Reference
from kina.ops.base import Array
from kina.source import Source
from kina.types import DType, Type

_EXAMPLE = "example"
_BLOCK = re.compile(r"^```kina\n(?P<text>.*?)\n```$", flags=re.S | re.M)


@dataclass(frozen=True, slots=True)
class Example:
    """A program as its author wrote it, without the comment that says what it gives."""

    text: str
    says: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What an example gives: its type and its value, as text."""

    type: Type
    value: str


def read_example(text: str) -> Example:
    """Splits what is computed from the value that its author says it has. Without one, `says` is empty."""
    program, mark, says = text.rstrip().rpartition("  // ")
    return Example(program, says) if mark and "\n" not in says else Example(text.rstrip(), "")


def answer(example: Example) -> Answer:
    """What it gives today. Raises KinaError if it does not check, or ends with an error."""
    text = example.text
    program = text if f"let {_EXAMPLE}" in text else f"let {_EXAMPLE} = {text}"
    checked = pipeline.check(Source(_EXAMPLE, program + "\n"))
    if not checked.ok:
        from kina.diagnostics.render import render

        raise KinaError(render(checked.diagnostics))
    function = checked.function(_EXAMPLE)
    leaves = iter(Reference(function).run({}, []))
    return Answer(function.result_type, _tree_text(function.result, leaves))


def worked_out(page: Page) -> Page:
    """The page with the value of each example below it, as it is computed now. Raises KinaError if one fails.

    A module's programs are its author's, and stay as they are.
    """
    if page.folder not in ("operations", "language"):
        return page
    sections = (replace(s, text=_BLOCK.sub(_with_answer, s.text)) for s in page.sections)
    return replace(page, sections=tuple(sections))


def _with_answer(block: re.Match[str]) -> str:
    example = read_example(block["text"])
    if not example.says:
        return block[0]
    found = answer(example)
    return f"```kina\n{example.text}\n```\n\n```text\n{found.value}\n```\n\nof type `{found.type}`"


def _tree_text(tree: Tree, leaves: Iterator[Array]) -> str:
    match tree:
        case Value():
            return value_text(next(leaves))
        case Struct(fields=fields):
            return "{ " + ", ".join(f"{name} = {_tree_text(item, leaves)}" for name, item in fields) + " }"
        case Stack(item=item):
            return _tree_text(item, leaves)
        case _:
            return "(" + ", ".join(_tree_text(item, leaves) for item in tree) + ")"


def value_text(array: Array) -> str:
    """An array as a literal of Kina, floats with six significant digits; infinities and NaN are words."""
    wide = array.astype(np.float64) if DType.of_numpy(array.dtype) in (DType.BF16, DType.F16) else array
    return _nested(wide.tolist())


def _nested(value: object) -> str:
    match value:
        case list():
            return "[" + ", ".join(map(_nested, value)) + "]"
        case bool():
            return str(value).lower()
        case float():
            return _float_text(value)
        case _:
            return str(value)


def _float_text(value: float) -> str:
    text = f"{value:.6g}"
    return f"{text}.0" if text.lstrip("-").isdigit() else text
