"""What is said where weights do not fit a record: every fault, by kind, with shapes and the nearest name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from itertools import islice

from kina.diagnostics import KinaError
from kina.elaborate.record_forms import RecordForm

_SHOWN = 100
"""Faults of one kind that are listed; of more, the number is said."""
_COMPARED = 2000
"""Names among which a near one is looked for."""


class Kind(Enum):
    """What is wrong with a tensor."""

    MISSING = "missing"
    SHAPE = "wrong shape"
    DTYPE = "wrong format"
    EXTRA = "extra"


@dataclass(frozen=True, slots=True)
class Fault:
    """One tensor that does not fit. `wanted` is its type in symbols, `which` in numbers, `got` what the file has."""

    kind: Kind
    name: str
    file_name: str = ""
    wanted: str = ""
    which: str = ""
    got: str = ""
    near: tuple[str, object] | None = None

    @property
    def text(self) -> str:
        called = f" (in the file: {self.file_name})" if self.file_name not in ("", self.name) else ""
        wanted = f": wanted {self.wanted}" if self.wanted else ""
        which = f" = {self.which}" if self.which not in ("", self.wanted) else ""
        got = f"{',' if wanted else ':'} has {self.got}" if self.got else ""
        return f"{self.name}{called}{wanted}{which}{got}{self._nearest()}"

    def _nearest(self) -> str:
        if self.near is None:
            return ""
        name, among = self.near
        assert isinstance(among, Iterable)
        close = get_close_matches(name, list(islice((str(n) for n in among), _COMPARED)), n=1)
        return f"; nearest name: {close[0]}" if close else ""


def does_not_fit(path: str, form: RecordForm, faults: Sequence[Fault]) -> KinaError:
    """All faults, those of a kind together."""
    lines = [line for kind in Kind for line in _lines(kind, [f for f in faults if f.kind is kind])]
    return KinaError("\n".join([f"{path} does not fit {form.declaration.name}[{_binders(form)}]", *lines]))


def _lines(kind: Kind, faults: Sequence[Fault]) -> Iterator[str]:
    if not faults:
        return
    for fault in faults[:_SHOWN]:
        yield f"  {kind.value}: {fault.text}"
    if len(faults) > _SHOWN:
        yield f"  {kind.value}: {len(faults) - _SHOWN} more"
    if kind is Kind.DTYPE:
        yield "  help: convert=True reads what is stored in another format as the record's float dtype (a copy)"


def open_sizes(path: str, form: RecordForm, names: Sequence[str], enough: Sequence[str]) -> KinaError:
    """The shapes leave sizes open; those of `enough`, given too, settle all."""
    given = ", ".join(f"{name}=..." for name in enough)
    return KinaError(
        f"the shapes in {path} do not say what {', '.join(names)} of {form.name} {'is' if len(names) == 1 else 'are'}\n"
        f"  give by name: {form.name}.load(..., {given})"
    )


def _binders(form: RecordForm) -> str:
    return ", ".join(b.name if b.kind is None else f"{b.name} : {b.kind}" for b in form.declaration.binders)
