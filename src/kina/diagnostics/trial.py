"""Help is tried before it is shown: each edit is applied to the text, and the text is checked again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from kina.diagnostics.diagnostic import Diagnostic, Edit, Help
from kina.source import Source

Owned = tuple[str | None, Diagnostic]
"""An error, and the function that has it: None where it stands outside of all."""

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
    before = Counter(map(_key, errors))
    left = _MOST_TRIALS
    for owner, error in errors:
        if not any(help_.edits for help_ in error.help):
            yield error
            continue
        mends: list[Help] = []
        advice: list[Help] = []
        sure = False
        for help_ in sorted(error.help, key=lambda h: h.guess):
            if help_.guess and sure:
                break
            foreign = any(edit.span.source is not source for edit in help_.edits)
            if not help_.edits or foreign or left == 0:
                if not help_.guess:
                    advice.append(help_)
                continue
            left -= 1
            after = Counter(map(_key, again(_edited(source, help_.edits))))
            if _mended((owner, error), before, after):
                mends.append(help_)
                sure = not help_.guess
            elif not help_.guess:
                advice.append(_as_words(help_))
            if len(mends) == _MOST_SHOWN:
                break
        yield replace(error, help=(*mends, *_worth_saying(error, mends, advice)))


def applied(text: str, edits: Iterable[Edit]) -> str:
    """A text with all edits made, which do not overlap."""
    for edit in sorted(edits, key=lambda e: (-e.span.start, -e.span.end)):
        text = text[: edit.span.start] + edit.text + text[edit.span.end :]
    return text


Key = tuple[str | None, str, str]


def _key(owned: Owned) -> Key:
    owner, error = owned
    return owner, error.code, error.message


def _edited(source: Source, edits: Sequence[Edit]) -> Source:
    return Source(source.name, applied(source.text, edits), source.folder)


def _mended(error: Owned, before: Counter[Key], after: Counter[Key]) -> bool:
    elsewhere = [key for key in after - before if error[0] is not None and key[0] not in (error[0], None)]
    return after[_key(error)] < before[_key(error)] and len(after - before) == len(elsewhere)


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
