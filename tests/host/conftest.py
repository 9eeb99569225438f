"""Libraries that only some environments have."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def torch() -> Any:
    """PyTorch, or the test is skipped. `tests/torch` alone, which looks like a package of that name, is not it."""
    pytest.importorskip("torch.nn")
    import torch

    return torch
