"""The real model, where it has been fetched already: `make demo` does that; `KINA_MODEL` names another place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_CACHED = Path(__file__).parents[2] / ".cache" / "SmolLM2-135M-Instruct.Q4_1.gguf"
PATH = Path(os.environ.get("KINA_MODEL", _CACHED))

needs_model = pytest.mark.skipif(not PATH.exists(), reason="the model is not here; `make demo` fetches it")
