"""Loading, compiling and checking programs from Python: what `import kina` offers."""

from __future__ import annotations

import os
from typing import Literal

from kina import pipeline
from kina.diagnostics import Diagnostic, KinaError, Severity
from kina.host.files import read_source
from kina.host.module import Compile, Module, make_module
from kina.host.reference import Reference
from kina.source import Source

Backend = Literal["native", "reference"]


def load(path: str | os.PathLike[str], *, strict: bool = False, backend: Backend = "native") -> Module:
    """The module in a file. Raises KinaError with the rendered diagnostics if it has errors.

    `strict` refuses surface sugar. `backend="reference"` runs the interpreter that defines the language.
    """
    return _module(read_source(path), strict, backend)


def compile(text: str, *, name: str = "<text>", strict: bool = False, backend: Backend = "native") -> Module:
    """The module that a program text is; `name` stands for it in messages. Raises KinaError as `load` does."""
    return _module(Source(name, text), strict, backend)


def check(path: str | os.PathLike[str], *, strict: bool = False) -> list[Diagnostic]:
    """All findings about a file, in order of place. Raises KinaError only if it cannot be read."""
    return list(pipeline.check(read_source(path), strict=strict).diagnostics)


def _module(source: Source, strict: bool, backend: Backend) -> Module:
    checked = pipeline.check(source, strict=strict)
    if not checked.ok:
        from kina.diagnostics.render import render

        errors = [d for d in checked.diagnostics if d.severity is Severity.ERROR]
        raise KinaError(render(errors, color=False, width=100), errors)
    return make_module(checked, executable_of(backend))


def executable_of(backend: Backend) -> Compile:
    """How functions become executables."""
    if backend == "reference":
        return Reference
    if backend == "native":
        return pipeline.compile_function
    raise ValueError(f"there is a native and a reference backend, not {backend!r}")
