"""The modules that a program imports: the standard library's, and files beside the program's own."""

from __future__ import annotations

from pathlib import Path

from kina import std
from kina.elaborate.elaborator import Imported, NotFound
from kina.source import Source
from kina.syntax import ast
from kina.syntax.parser import parse


def load(declaration: ast.ImportDeclaration, source: Source) -> Imported:
    """Finds and parses what an import names: `std.nn`, or a path that is looked up beside the file that imports it.

    Raises NotFound.
    """
    if not declaration.quoted:
        found = std.find(declaration.path)
        if found is None:
            raise NotFound("the standard library has no module of this name", std.names())
        return _parsed(declaration.path, found)
    if source.folder is None:
        raise NotFound("this program was not read from a file, so there is no folder to look in")
    path = Path(source.folder, declaration.path)
    try:
        text = path.read_bytes().decode("utf-8").removeprefix("\ufeff")
    except OSError as fault:
        beside = sorted(p.name for p in Path(source.folder).glob("*.kina") if p.name != Path(source.name).name)
        raise NotFound(fault.strerror or str(fault), tuple(f'"{name}"' for name in beside)) from None
    except UnicodeDecodeError as fault:
        raise NotFound(f"it is not UTF-8 text (byte {fault.start})") from None
    except ValueError as fault:
        raise NotFound(str(fault)) from None
    return _parsed(str(path.resolve()), Source(str(path), text, str(path.parent)))


def _parsed(key: str, source: Source) -> Imported:
    parsed = parse(source)
    return Imported(key, source, parsed.module, parsed.diagnostics)
