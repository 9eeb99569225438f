"""Help is tried before it is shown: each edit is applied to the text, and the text is checked again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from kina.diagnostics.diagnostic import Diagnostic, Edit, Help
from kina.source import Source

Owned = tuple[str | None, Diagnostic]
"""An error, and the function that has it: None where it stands outside of all."""
Key = tuple[str | None, str, str]

_MOST_TRIALS = 60
"""How many texts are checked for the errors of one file; help beyond that is shown untried, guesses not at all."""
_MOST_SHOWN = 2
"""How many mends of one error are shown."""


def tried(errors: Sequence[Owned], source: Source, again: Callable[[Source], Sequence[Owned]]) -> Iterator[Diagnostic]:
    """The errors of a source, each with the help that mends it.

    Help mends an error if the error is gone once its edits are applied, and the function has no other one instead;
    callers may have new ones, such as what a function now requires of them. Guesses are tried only where nothing surer
    mends. Help that does not mend is shown only where nothing does, as plain advice.
    """
    trials = _Trials(source, again, Counter(map(_key, errors)))
    for owned in errors:
        yield trials.with_help_that_mends(owned)


@dataclass(slots=True)
class _Trials:
    """`before` are the errors of the source, `left` is how many texts may still be checked."""

    source: Source
    again: Callable[[Source], Sequence[Owned]]
    before: Counter[Key]
    left: int = _MOST_TRIALS

    def with_help_that_mends(self, owned: Owned) -> Diagnostic:
        error = owned[1]
        mends: list[Help] = []
        advice: list[Help] = []
        for help_ in sorted(error.help, key=lambda h: h.guess):
            if len(mends) == _MOST_SHOWN or (help_.guess and any(not mend.guess for mend in mends)):
                break
            if not self._can_try(help_):
                advice += [] if help_.guess else [help_]
            elif self._mends(owned, help_):
                mends.append(help_)
            elif not help_.guess:
                advice.append(_as_words(help_))
        return replace(error, help=(*mends, *_worth_saying(error, mends, advice)))

    def _can_try(self, help_: Help) -> bool:
        here = all(edit.span.source is self.source for edit in help_.edits)
        return bool(help_.edits) and here and self.left > 0

    def _mends(self, owned: Owned, help_: Help) -> bool:
        self.left -= 1
        after = Counter(map(_key, self.again(_edited(self.source, help_.edits))))
        owner, new = owned[0], after - self.before
        elsewhere = [key for key in new if owner is not None and key[0] not in (owner, None)]
        return after[_key(owned)] < self.before[_key(owned)] and len(new) == len(elsewhere)


def applied(text: str, edits: Iterable[Edit]) -> str:
    """A text with all edits made, which do not overlap."""
    for edit in sorted(edits, key=lambda e: (-e.span.start, -e.span.end)):
        text = text[: edit.span.start] + edit.text + text[edit.span.end :]
    return text


def _key(owned: Owned) -> Key:
    owner, error = owned
    return owner, error.code, error.message


def _edited(source: Source, edits: Sequence[Edit]) -> Source:
    return Source(source.name, applied(source.text, edits), source.folder)


def _as_words(help_: Help) -> Help:
    """Help without its edits; what it would have put in is named."""
    inserted = [edit.text.strip() for edit in help_.edits if edit.span.start == edit.span.end]
    return Help(": ".join([help_.message, *inserted]))


def _worth_saying(error: Diagnostic, mends: Sequence[Help], advice: Sequence[Help]) -> Iterator[Help]:
    """Advice that never had edits always; of the help that does not mend, the first where nothing does."""
    plain = {help_.message for help_ in error.help if not help_.edits}
    yield from (help_ for help_ in advice if help_.message in plain or help_.edits)
    if not mends:
        yield from islice((help_ for help_ in advice if help_.message not in plain and not help_.edits), 1)
