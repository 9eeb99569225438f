"""Markdown to HTML: raw HTML is escaped, Kina is coloured, and names that have a page are links."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from urllib.parse import quote

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

from kina.source import Source
from kina.syntax.lexer import KEYWORDS, WORD_OPERATORS, lex

_CLASSES = {"number": "n", "string": "s", "hole": "k"}


@dataclass(slots=True)
class Renderer:
    """Renders the Markdown of one page. `links` says where each name's page is, seen from the site's root."""

    links: Mapping[str, str]
    root: str
    here: str
    _markdown: MarkdownIt = field(init=False)

    def __post_init__(self) -> None:
        self._markdown = MarkdownIt("commonmark", {"html": False, "highlight": self._highlight}).enable("table")
        self._markdown.add_render_rule("code_inline", lambda _renderer, *given: self._code_inline(*given))

    def html(self, text: str) -> str:
        """A text's HTML. Its headings stand below those of the page, which has the first two levels."""
        tokens = self._markdown.parse(text)
        for token in tokens:
            if token.type in ("heading_open", "heading_close"):
                token.tag = f"h{min(int(token.tag[1:]) + 2, 6)}"
        return str(self._markdown.renderer.render(tokens, self._markdown.options, {}))

    def line(self, text: str) -> str:
        """A line of Markdown, without a paragraph around it."""
        return str(self._markdown.renderInline(text))

    def code(self, text: str) -> str:
        """Kina, coloured, with links."""
        return "".join(self._pieces(text))

    def _highlight(self, text: str, language: str, _attributes: str) -> str:
        return self.code(text) if language == "kina" else ""

    def _code_inline(self, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: object) -> str:
        return self._linked(tokens[index].content, tag="code")

    def _linked(self, name: str, *, tag: str = "") -> str:
        shown = f"<{tag}>{escape(name)}</{tag}>" if tag else escape(name)
        target = self.links.get(name)
        if target is None or target == self.here:
            return shown
        return f'<a href="{escape(self.root + target)}">{shown}</a>'

    def _pieces(self, text: str) -> Iterator[str]:
        """Tokens and what is between them. Names of parameters and fields (`norm :`, `layer.norm`) are no links."""
        tokens = lex(Source("documentation", text))
        marks = [(start, end, "c") for start, end in tokens.comments]
        for kind, start, end in zip(tokens.kinds, tokens.starts, tokens.ends, strict=True):
            bound = text[end:].lstrip(" ").startswith(":") or text[:start].endswith(".")
            word = "k" if kind in KEYWORDS or kind in WORD_OPERATORS else _CLASSES.get(kind, "")
            marks.append((start, end, "name" if kind == "name" and not bound else word))
        done = 0
        for start, end, mark in sorted(marks):
            if start < done or end <= start:
                continue
            yield escape(text[done:start])
            piece = text[start:end]
            if mark == "name":
                yield self._linked(piece)
            else:
                yield f'<span class="{mark}">{escape(piece)}</span>' if mark else escape(piece)
            done = end
        yield escape(text[done:])


def url(path: str) -> str:
    """A path in a site as part of an address."""
    return quote(path)
