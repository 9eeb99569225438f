"""Every program that this repository has: files, fences of the documentation, texts inside tests."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"```kina\n(.*?)```", re.S)
_LET = re.compile(r"(^|\n)\s*(let|type|test|import) \S")


def files() -> Iterator[tuple[str, str]]:
    """The `.kina` files of examples, standard library, golden tests, cases: where each stands, and its text."""
    for folder in ("examples", "src", "tests", "docs", "benchmarks"):
        for path in sorted((ROOT / folder).rglob("*.kina")):
            yield str(path.relative_to(ROOT)), path.read_text()


def fences() -> Iterator[tuple[str, str]]:
    """The programs shown in the documentation and on the pages of error codes."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "src/kina/diagnostics/pages").glob("*.md")]
    for path in sorted(pages):
        for number, match in enumerate(_FENCE.finditer(path.read_text())):
            yield f"{path.relative_to(ROOT)}#{number}", match[1]


def texts_in_tests() -> Iterator[tuple[str, str]]:
    """What looks like a program among the strings of the tests; some are meant to be wrong."""
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _LET.search(node.value):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", textwrap.dedent(node.value).strip() + "\n"
