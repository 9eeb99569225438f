"""What all tests share: checking a program from its text."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from kina.diagnostics import Diagnostic, Severity
from kina.pipeline import Checked
from kina.pipeline import check as check_source
from kina.source import Source


@dataclass(frozen=True)
class Program:
    """A checked text, with claims about it."""

    checked: Checked

    @property
    def errors(self) -> list[Diagnostic]:
        return [d for d in self.checked.diagnostics if d.severity is Severity.ERROR]

    @property
    def statuses(self) -> set[str]:
        return {o.status_text for o in self.checked.elaboration.obligations}

    def accepts(self) -> Program:
        assert not self.errors, "\n".join(f"{d.code} {d.span}: {d.message}" for d in self.errors)
        return self

    def rejects(self, code: str, *texts: str, line: int | None = None) -> Diagnostic:
        """Exactly one error, of this code, that says all these texts."""
        assert [d.code for d in self.errors] == [code], [(d.code, d.message) for d in self.errors]
        (error,) = self.errors
        said = "\n".join(
            [
                error.message,
                error.label,
                *error.notes,
                *(h.message for h in error.help),
                *(label.text for label in error.labels),
            ]
        )
        for text in texts:
            assert text in said, said
        if line is not None:
            assert error.span.line == line
        return error

    def helped(self) -> Program:
        """The program after the first help of its error is applied."""
        (error,) = self.errors
        text = self.checked.source.text
        edits = sorted(error.help[0].edits, key=lambda e: -e.span.start)
        assert edits, "the help has nothing to apply"
        for edit in edits:
            text = text[: edit.span.start] + edit.text + text[edit.span.end :]
        return Program(check_source(Source("helped.kina", text)))


@pytest.fixture
def check() -> Callable[..., Program]:
    """`check(text)` parses and checks a program."""

    def run(text: str, *, strict: bool = False) -> Program:
        return Program(check_source(Source("test.kina", textwrap.dedent(text).strip() + "\n"), strict=strict))

    return run


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))
