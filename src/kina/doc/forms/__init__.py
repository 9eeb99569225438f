"""Forms that are no operation by themselves: a page each, in Markdown beside this file.

A page begins with `# name`, then lines `key: value` (`family`, `usage`, `shapes`, `torch`, `names` where one page is
about several names), a blank line, and the text. Blocks marked `kina` are programs; where one has `let example`, the
comment at its end is the value that it gives, and `kina rejected K0301` marks one that is wrong in this way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from kina.doc.pages import Page, Section, summary_of

_KEYS = frozenset({"family", "usage", "shapes", "torch", "names"})


@dataclass(frozen=True, slots=True)
class Form:
    """A form's page as it was written. `head` has the `key: value` lines; several of one key are lines."""

    name: str
    head: Mapping[str, str]
    text: str

    @property
    def names(self) -> tuple[str, ...]:
        """All that the page is about."""
        return (self.name, *self.head.get("names", "").split())


def all_forms() -> tuple[Form, ...]:
    """Every form, by name."""
    folder = files(__name__)
    texts = (f.read_text(encoding="utf-8") for f in folder.iterdir() if f.name.endswith(".md"))
    return tuple(sorted((read_form(text) for text in texts), key=lambda form: form.name))


def read_form(page: str) -> Form:
    """Reads a page. Raises ValueError for one without title or with a key that nothing knows."""
    top, _, text = page.partition("\n\n")
    title, *lines = top.splitlines()
    if not title.startswith("# "):
        raise ValueError(f"the page of a form has to begin with its name, not with {title!r}")
    head: dict[str, str] = {}
    for line in lines:
        key, colon, value = line.partition(": ")
        if not colon or key not in _KEYS:
            raise ValueError(f"{title}: {line!r} is none of {', '.join(sorted(_KEYS))}")
        head[key] = f"{head[key]}\n{value}" if key in head else value
    return Form(title.removeprefix("# "), head, text.strip())


def form_pages() -> list[Page]:
    """A page for each form; headings of the second level are its sections."""
    return [_page(form) for form in all_forms()]


def _page(form: Form) -> Page:
    intro, *rest = f"\n{form.text}".split("\n## ")
    sections = tuple(Section(title, body.strip()) for title, _, body in (part.partition("\n") for part in rest))
    family = form.head.get("family", "language")
    torch = form.head.get("torch", "")
    if torch and torch != "none":
        sections = (*sections, Section("In PyTorch", f"```python\n{torch}\n```"))
    intro = intro.strip()
    folder = "language" if family == "language" else "operations"
    usage, shapes = form.head.get("usage", ""), form.head.get("shapes", "")
    return Page(form.name, folder, family, summary_of(intro), intro, usage, shapes, torch, sections)
