"""`kina doc -o`: the site is well formed, its links lead somewhere, and what a file says cannot get out of its page."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

pytest.importorskip("jinja2")  # an environment made before it was pinned lacks it

from kina import std
from kina.doc.modules import module_page
from kina.doc.pages import error_pages, reference
from kina.doc.site import write_site
from kina.source import Source

HOSTILE = """\
// <script>alert("file")</script> in front & more

/// <script>alert(1)</script> <img src=x onerror=alert(2)> [link](javascript:alert(3)) ![i](data:text/html,x)
///
/// # A heading
///
/// ```kina
/// let x = "</code><script>alert(4)</script>"
/// ```
let f' [N] (flip : F32[N]) (x : F32[N]) : F32[N] = x // </script>

test "<b>\\"bold\\"</b>" = f' [1.0] == [1.0]
"""
VOID = {"meta", "link", "input", "br", "hr", "img"}


class Parsed(HTMLParser):
    """Tags with their attributes; raises where one is not closed by its own end."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open, self.getpos())
        self.open.pop()

    def all(self, tag: str, attribute: str) -> list[str]:
        return [a[attribute] for t, a in self.tags if t == tag and attribute in a]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    modules = [module_page(source) for name in std.names() if (source := std.find(name))]
    write_site(folder, [*modules, module_page(Source("../we ird'.kina", HOSTILE))])
    return folder


@pytest.fixture(scope="module")
def parsed(site: Path) -> dict[str, Parsed]:
    return {str(p.relative_to(site)): Parsed(p.read_text(encoding="utf-8")) for p in site.rglob("*.html")}


def test_every_operation_form_error_and_module_has_a_page(parsed):
    pages = [*reference().values(), *error_pages().values()]
    assert {p.path for p in pages} < set(parsed)
    assert {f"modules/{name}.html" for name in std.names()} < set(parsed)


def test_pages_are_well_formed_with_one_title_and_no_id_twice(parsed):
    for name, page in parsed.items():
        tags = [tag for tag, _ in page.tags]
        assert tags.count("h1") == tags.count("main") == tags.count("title") == 1, name
        ids = [a["id"] for _, a in page.tags if "id" in a]
        assert len(ids) == len(set(ids)), name
        assert all("lang" in a for tag, a in page.tags if tag == "html")


def test_every_link_leads_to_a_page_and_a_place_on_it(site, parsed):
    for name, page in parsed.items():
        for href in page.all("a", "href") + page.all("link", "href") + page.all("script", "src"):
            path, _, place = href.partition("#")
            assert ":" not in path, f"{name} needs something from outside: {href}"
            target = (site / name).parent / unquote(path) if path else site / name
            assert target.is_file(), f"{name}: {href}"
            if place and target.suffix == ".html":
                ids = [a.get("id") for _, a in parsed[str(target.resolve().relative_to(site.resolve()))].tags]
                assert place in ids or unquote(place) in ids, f"{name}: {href}"


def test_the_search_finds_everything_from_an_index_that_is_data(site, parsed):
    text = (site / "index.js").read_text()
    entries = json.loads(text.removeprefix("window.KINA_INDEX = ").rstrip(";\n"))
    names = {e["name"] for e in entries}
    assert {"softmax", "einsum", "let dim", "K0301", "std.nn", "std.nn.rms_norm"} <= names
    for e in entries:
        assert unquote(e["url"].partition("#")[0]) in parsed
    script = (site / "search.js").read_text()
    assert "innerHTML" not in script and "http" not in script


def test_a_hostile_comment_stays_text(site, parsed):
    assert not list(site.parent.glob("*.kina*"))
    (name,) = [n for n in parsed if "ird" in n]
    page = parsed[name]
    assert page.all("script", "src") == ["../index.js", "../search.js"]
    assert [t for t, _ in page.tags].count("script") == 2
    assert not [a for tag, a in page.tags if tag in ("img", "b") or any(key.startswith("on") for key in a)]
    assert not [h for h in page.all("a", "href") if "javascript" in h]
    assert "../operations/flip.html" not in page.all("a", "href"), "a parameter is no operation"
    text = (site / name).read_text()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "&lt;b&gt;" in text


def test_values_of_examples_stand_below_them(site):
    text = (site / "operations" / "softmax.html").read_text()
    assert "[0.25, 0.75]" in text and "Tensor[F32, [2]]" in text


def test_names_in_text_and_programs_are_links(parsed):
    links = parsed["modules/std.nn.html"].all("a", "href")
    assert "../operations/reshape.html" in links
    assert "../modules/std.nn.html#swiglu" in links and "../modules/std.linalg.html#norm" not in links
    assert "../errors/K0303.html" in parsed["operations/matmul.html"].all("a", "href")
