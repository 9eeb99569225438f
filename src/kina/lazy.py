"""NumPy, imported at its first use: checking a program needs none of it, and it is half of a cold start."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["np"]

if TYPE_CHECKING:
    import numpy as np
else:

    class _Lazy:
        """Stands for a module until an attribute of it is asked for."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, attribute: str) -> Any:
            value = getattr(import_module(self._name), attribute)
            self.__dict__[attribute] = value
            return value

    np = _Lazy("numpy")
