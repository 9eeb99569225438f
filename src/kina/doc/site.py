"""The reference as a static site: it is read from disk or served, with a search that needs no server."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import jinja2

from kina import __version__
from kina.doc.examples import worked_out
from kina.doc.markdown import Renderer, url
from kina.doc.modules import ModulePage
from kina.doc.pages import Page, error_pages, reference

_ASSETS = ("style.css", "search.js")


def write_site(folder: Path, modules: Sequence[ModulePage]) -> int:
    """Writes all pages, of which it gives the number. Raises OSError where that fails, KinaError where an example does.

    Files of these names are written over; nothing else in the folder is touched.
    """
    groups = _groups(modules)
    pages = [page for _, members in groups for page in members]
    links = _links(pages)
    own = {module.page.path: _members(module) for module in modules}
    environment = _environment()
    made = {
        page.path: _page_html(environment, worked_out(page), groups, {**links, **own.get(page.path, {})})
        for page in pages
    }
    made["index.html"] = environment.get_template("index.html").render(
        title="Reference", root="", version=__version__, groups=groups,
        md=Renderer(links, "", "index.html"),
    )  # fmt: skip
    made["index.js"] = f"window.KINA_INDEX = {json.dumps(_index(pages, modules))};\n"
    for name in _ASSETS:
        made[name] = _template(name)
    for path, text in made.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return len(pages) + 1


def _groups(modules: Sequence[ModulePage]) -> list[tuple[str, list[Page]]]:
    """All pages by group, operations first; modules by the name of their kind."""
    found: dict[str, list[Page]] = {}
    everything = [*reference().values(), *(m.page for m in modules), *error_pages().values()]
    for page in everything:
        found.setdefault(page.group, []).append(page)
    order = [g for g in found if g not in ("language", "modules", "errors")]
    return [(g, found[g]) for g in (*order, "language", "modules", "errors") if g in found]


def _links(pages: Sequence[Page]) -> Mapping[str, str]:
    """Where the page of each name is."""
    from kina.doc.forms import all_forms

    by_name = {page.name: url(page.path) for page in pages}
    also = {name: by_name[form.name] for form in all_forms() for name in form.names}
    return {**also, **by_name}


def _members(module: ModulePage) -> Mapping[str, str]:
    """Where on its page what a module declares is: links on this page only, as other modules may mean other things."""
    at = url(module.page.path)
    return {member.name: f"{at}#{_anchor(member.name)}" for member in module.members}


def _page_html(
    environment: jinja2.Environment, page: Page, groups: Sequence[tuple[str, list[Page]]], links: Mapping[str, str]
) -> str:
    near = next(members for group, members in groups if group == page.group)
    root = "../"
    html: str = environment.get_template("page.html").render(
        title=page.title, page=page, root=root, version=__version__, near=near if page.folder != "errors" else [],
        md=Renderer(links, root, url(page.path)),
    )  # fmt: skip
    return html


def _index(pages: Sequence[Page], modules: Sequence[ModulePage]) -> list[Mapping[str, str]]:
    """What the search knows: every page, and everything in a module."""
    entries = [_entry(p.name, p.folder, p.summary, url(p.path), p.torch) for p in pages]
    for module in modules:
        at = url(module.page.path)
        for m in module.members:
            name = f"{module.page.name}.{m.name}"
            entries.append(_entry(name, "modules", m.summary, f"{at}#{_anchor(m.name)}", ""))
    return entries


def _entry(name: str, kind: str, summary: str, address: str, torch: str) -> Mapping[str, str]:
    plain = summary.replace("`", "")
    return {"name": name, "kind": kind.removesuffix("s"), "summary": plain, "url": address, "torch": torch}


def _anchor(title: str) -> str:
    return url(title.replace(" ", "-"))


def _environment() -> jinja2.Environment:
    loader = jinja2.FunctionLoader(_template)
    environment = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(url=url, anchor=_anchor)
    return environment


def _template(name: str) -> str:
    return files("kina.doc").joinpath("templates", name).read_text(encoding="utf-8")
