"""The guides to models are run: their programs are written to files, their Python is executed, one page in one go."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from real_model import PATH

from kina.diagnostics.render import render
from kina.pipeline import check
from kina.source import Source

DOCS = Path(__file__).parents[2] / "docs"
_BLOCK = re.compile(r"^```(?P<kind>kina|python)(?P<marks>[a-z0-9 ]*)\n(?P<text>.*?)^```$", flags=re.S | re.M)
_FILE = re.compile(r"// (?P<name>[a-z_]+\.kina)\n")


@dataclass(frozen=True)
class Block:
    """A fenced block, and the line of its page at which it begins."""

    kind: str
    marks: tuple[str, ...]
    text: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        yield Block(found["kind"], tuple(found["marks"].split()), found["text"], text.count("\n", 0, found.start()) + 2)


def follow(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """Does what a page says, in a folder of its own. `continued` adds to a program, `smollm2` needs the real model."""
    monkeypatch.chdir(folder)
    if PATH.exists():
        monkeypatch.setenv("KINA_MODEL", str(PATH))
    names: dict[str, object] = {}
    for block in blocks(page):
        if block.kind == "kina":
            name = _FILE.match(block.text)
            assert name is not None, f"{page.name}:{block.line}: the program says no file"
            path = Path(name["name"])
            before = path.read_text(encoding="utf-8") if "continued" in block.marks else ""
            path.write_text(before + block.text[name.end() :], encoding="utf-8")
            checked = check(Source(path.name, path.read_text(encoding="utf-8")))
            assert checked.ok, render(checked.diagnostics)
            assert "runtime" not in {o.status_text for o in checked.elaboration.obligations}
        elif "smollm2" not in block.marks or PATH.exists():
            code = "\n" * (block.line - 1) + block.text
            exec(compile(code, page.name, "exec"), names)
    return names


def test_the_page_on_your_own_model_does_what_it_says(tmp_path, monkeypatch):
    pytest.importorskip("safetensors")
    names = follow(DOCS / "your_model.md", tmp_path, monkeypatch)
    assert names["module"].classify.compilations == 1


def test_the_tutorial_does_what_it_says(tmp_path, monkeypatch):
    pytest.importorskip("tokenizers")
    pytest.importorskip("jinja2")
    names = follow(DOCS / "tutorial.md", tmp_path, monkeypatch)
    if PATH.exists():
        assert "Paris" in names["answer"]
