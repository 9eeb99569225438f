"""Kina: a typed tensor language with a compiler.

>>> import kina
>>> nn = kina.load("rmsnorm.kina")  # doctest: +SKIP
>>> y = nn.rmsnorm(x, weight, 1e-6)  # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kina.diagnostics import Diagnostic, KinaError
    from kina.host.api import check, compile, load
    from kina.host.module import Function, Module

__version__ = "0.1.0"
__all__ = ["Diagnostic", "Function", "KinaError", "Module", "check", "compile", "load"]

_HOMES = {
    "Diagnostic": "kina.diagnostics",
    "Function": "kina.host.module",
    "KinaError": "kina.diagnostics",
    "Module": "kina.host.module",
    "check": "kina.host.api",
    "compile": "kina.host.api",
    "load": "kina.host.api",
}


def __getattr__(name: str) -> Any:
    # The compiler is loaded when it is first asked for: `import kina` alone costs next to nothing.
    if name not in _HOMES:
        raise AttributeError(f"module 'kina' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
