"""What cannot be differentiated."""

from __future__ import annotations

from kina.source import Span


class Unsupported(Exception):
    """A form that differentiation does not know; the text says which, `span` where it stands."""

    def __init__(self, what: str, span: Span | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.span = span
