"""Errors about the axis patterns of `einsum` and `rearrange`: K0220, marked at the letter inside the pattern."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kina.diagnostics.diagnostic import Diagnostic, Edit, Help, Label, Severity
from kina.diagnostics.names import nearest
from kina.source import Span
from kina.types import Shape, shape_text


def _error(message: str, span: Span, label: str = "", **more: object) -> Diagnostic:
    return Diagnostic("K0220", Severity.ERROR, message, span, label, **more)  # type: ignore[arg-type]


def usage(shown: str) -> str:
    examples = {
        "einsum": "einsum[b s d, d e -> b s e] x y",
        "rearrange": "rearrange[b s (h d) -> b h s d, h=H] x",
    }
    return f"usage: {examples[shown]}"


def pattern_wanted(span: Span, shown: str, why: str) -> Diagnostic:
    """The bracket holds no pattern, or something else beside it."""
    return _error(f"`{shown}`: {why}", span, notes=(usage(shown),))


def wrong_number_of_tensors(span: Span, shown: str, described: int, given: int, arguments: Span) -> Diagnostic:
    tensors = "one tensor" if described == 1 else f"{described} tensors"
    return _error(
        f"`{shown}`: the pattern describes {tensors}, and {given} {'is' if given == 1 else 'are'} given", span,
        "one list of axes for each argument, with commas between",
        labels=(Label(arguments, f"{given} given here"),) if given else (),
        notes=(usage(shown),),
    )  # fmt: skip


def wrong_number_of_axes(
    span: Span, shown: str, named: int, at_least: bool, argument: Span, shape: Shape
) -> Diagnostic:
    count = f"{'at least ' if at_least else ''}{named} {'axis' if named == 1 else 'axes'}"
    rank = len(shape)
    help_ = Help("`...` stands for all axes that are not named") if not at_least and named < rank else None
    return _error(
        f"`{shown}`: the pattern names {count}, and `{argument.text}` has {rank}", span, "these axes",
        labels=(Label(argument, f"this is {shape_text(shape)}"),), help=(help_,) if help_ else (),
    )  # fmt: skip


def named_twice(span: Span, shown: str, name: str, first: Span, side: str) -> Diagnostic:
    """A letter that stands twice where it may stand only once."""
    return _error(
        f"`{shown}`: `{name}` stands twice {side}", span, "again here", labels=(Label(first, "first here"),)
    )


def not_in_result(span: Span, shown: str, name: str) -> Diagnostic:
    """`rearrange` drops no axis; `einsum` does not drop `...`."""
    if shown == "einsum":
        return _error(
            "`einsum`: `...` is not in the result", span, "axes that are not named cannot be summed",
            help=(Help("write `...` in the result too, or name the axes that are summed"),),
        )  # fmt: skip
    return _error(
        f"`rearrange`: `{name}` is not in the result", span, "rearrange drops no axis",
        help=(Help("`reduce` combines an axis into one value, an index picks from it"),),
    )  # fmt: skip


def only_in_result(span: Span, shown: str, name: str, known: Iterable[str]) -> Diagnostic:
    """A letter of the result that no argument has."""
    names = list(known)
    match = nearest(name, names)
    help_: tuple[Help, ...] = ()
    if match and name != "...":
        help_ = (Help(f"did you mean `{match}`?", (Edit(span, match),)),)
    elif shown == "rearrange" and name != "...":
        help_ = (Help("for an axis of size 1 write 1; `broadcast` and `repeat` make copies along a new axis"),)
    axes = f"the axes before the arrow: {', '.join(names)}" if names else "no axis is named before the arrow"
    return _error(f"`{shown}`: `{name}` is in the result alone", span, "no argument has it", notes=(axes,), help=help_)


def size_of_unknown(span: Span, name: str, known: Iterable[str]) -> Diagnostic:
    """`h=H` where the pattern has no h."""
    names = list(known)
    match = nearest(name, names)
    at = Span(span.source, span.start, span.start + len(name))
    help_ = (Help(f"did you mean `{match}`?", (Edit(at, match),)),) if match else ()
    axes = f"the axes of the pattern: {', '.join(names) or 'none'}"
    return _error(f"`rearrange`: the pattern has no axis `{name}`", at, notes=(axes,), help=help_)


def size_given_twice(span: Span, name: str) -> Diagnostic:
    return _error(f"`rearrange`: the size of `{name}` is given twice", span)


def number_in_pattern(span: Span, shown: str, number: str) -> Diagnostic:
    why = "an axis of size 1 is written 1; others get a name" if shown == "rearrange" else "axes have names here"
    return _error(f"`{shown}`: {number} cannot stand in the pattern", span, why)


def group_in_einsum(span: Span) -> Diagnostic:
    return _error(
        "`einsum`: groups of axes belong to `rearrange`", span, "one axis made of several",
        help=(Help("split or merge axes with `rearrange` before or after"),),
    )  # fmt: skip


def dots_in_group(span: Span) -> Diagnostic:
    return _error("`rearrange`: `...` cannot be split off an axis", span, "how many axes would it be?")


def open_group(span: Span, text: str, unknown: Sequence[str], size: object) -> Diagnostic:
    """`(h d)` where neither size is given."""
    listed = " and ".join(f"`{name}`" for name in unknown)
    given = ", ".join(f"{name}=..." for name in unknown[:-1])
    return _error(
        f"`rearrange`: an axis of size {size} does not say the sizes of {listed}", span, f"{text} is one axis",
        help=(Help(f"give all of them but one in the bracket: {given}"),),
    )  # fmt: skip


def sizes_differ(
    span: Span, shown: str, name: str, *, places: Sequence[tuple[Span, int, Span, object]],
    counterexample: Mapping[str, int] | None, help: tuple[Help, ...],
) -> Diagnostic:  # fmt: skip
    """One letter, two sizes. `places` say of each: where the letter stands, which axis of which argument, its size."""
    (first, axis, argument, left), (_, other_axis, other, right) = places
    label = "axes that are not named have" if name.startswith("...") else f"`{name}` has"
    if counterexample is None:
        note = f"{left} = {right} can be neither proved nor refuted"
    elif counterexample:
        note = f"they differ for {', '.join(f'{n} = {size}' for n, size in counterexample.items())}"
    else:
        note = "they always differ"
    return _error(
        f"`{shown}`: {label} two sizes, {left} and {right}", span, f"{right}: axis {other_axis} of {_short(other)}",
        labels=(Label(first, f"{left}: axis {axis} of {_short(argument)}"),), notes=(note,), help=help,
        counterexample=counterexample,
    )  # fmt: skip


def _short(argument: Span) -> str:
    text = argument.text.split("\n")[0]
    return text if len(text) <= 30 else text[:27] + "..."
