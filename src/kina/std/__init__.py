"""The standard library, in Kina: one file a module, `std.nn` in `nn.kina`."""

from __future__ import annotations

from functools import cache
from importlib import resources

from kina.source import Source


def names() -> tuple[str, ...]:
    """The modules that there are: `std.nn`, ..."""
    files = (item.name for item in resources.files(__name__).iterdir())
    return tuple(sorted(f"std.{name.removesuffix('.kina')}" for name in files if name.endswith(".kina")))


@cache
def find(name: str) -> Source | None:
    """A module's text by its name, or None where there is none."""
    if name not in names():
        return None
    file = resources.files(__name__).joinpath(f"{name.removeprefix('std.')}.kina")
    return Source(name, file.read_text(encoding="utf-8"))
