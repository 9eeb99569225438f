"""The page docs/operations.md, made from the declarations of operations and the pages of forms."""

from __future__ import annotations

from kina.doc.pages import Page, reference, table

HEAD = """\
# Operations and forms

All that can be called, and the forms of the language, each with its shapes and PyTorch's spelling; `make golden` writes
this page anew from the declarations. `kina doc NAME` has the whole page: parameters, dtypes, errors, derivative, an
example with its value. `[..., N, ...]` is an axis of size N with any axes around it, `[...S]` any axes at all.
[from_pytorch.md](from_pytorch.md) has whole idioms.
"""


def page() -> str:
    groups: dict[str, list[Page]] = {}
    for p in reference().values():
        groups.setdefault(p.group, []).append(p)
    order = [*(g for g in groups if g != "language"), "language"]
    return HEAD + "".join(f"\n## {group}\n\n{_table(groups[group])}\n" for group in order)


def _table(pages: list[Page]) -> str:
    rows = [(f"`{p.name}`", _code(p.shapes), p.summary, _code("" if p.torch == "none" else p.torch)) for p in pages]
    if not any(p.shapes for p in pages):
        return table(("", "what it is", "PyTorch"), [(name, summary, torch) for name, _, summary, torch in rows])
    return table(("", "shapes", "what it gives", "PyTorch"), rows)


def _code(text: str) -> str:
    return f"`{text}`" if text else ""
