"""Reading program files."""

from __future__ import annotations

import os
from pathlib import Path

from kina.diagnostics import KinaError
from kina.source import Source


class UnreadableFile(KinaError):
    """A file that is missing, may not be read, or is not UTF-8 text."""


def read_source(path: str | os.PathLike[str]) -> Source:
    """A file's text. Raises UnreadableFile."""
    shown = os.fspath(path)
    try:
        text = Path(path).read_bytes().decode("utf-8").removeprefix("\ufeff")
        return Source(shown, text, str(Path(path).parent))
    except OSError as fault:
        raise UnreadableFile(f"cannot read {shown}: {fault.strerror or fault}") from None
    except UnicodeDecodeError as fault:
        raise UnreadableFile(f"cannot read {shown}: not UTF-8 text (byte {fault.start})") from None
    except ValueError as fault:
        raise UnreadableFile(f"cannot read {shown!r}: {fault}") from None
