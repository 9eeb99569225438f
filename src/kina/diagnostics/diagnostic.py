"""What an error is, before anyone renders it: plain data, built where the knowledge is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from kina.source import Span


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Label:
    """A second place that matters, with a few words on why ("declared here")."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the text at `span` with `text`."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Help:
    """Advice; with edits, advice that a tool can apply. A guess is worth saying only if its edits mend the program
    and nothing surer does: see `diagnostics.trial`."""

    message: str
    edits: tuple[Edit, ...] = ()
    guess: bool = False


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding. `notes` are lines under the source excerpt; each may span several lines of text,
    which keep their alignment. `counterexample` maps dimension names to sizes that break the claim.
    """

    code: str
    severity: Severity
    message: str
    span: Span
    label: str = ""
    labels: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    help: tuple[Help, ...] = ()
    counterexample: Mapping[str, int] | None = field(default=None, hash=False)


class KinaError(Exception):
    """What every refusal by Kina is: one or more diagnostics, or a plain message at the host boundary."""

    def __init__(self, message: str, diagnostics: Sequence[Diagnostic] = ()) -> None:
        super().__init__(message)
        self.diagnostics = tuple(diagnostics)
