"""What `kina generate` and `kina chat` share: opening models, printing tokens as they come, speeds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kina.cli.common import Misuse
from kina.diagnostics import KinaError

if TYPE_CHECKING:
    from kina.models.llama import Llama

_Command = TypeVar("_Command", bound=Callable[..., Any])
_SMOLLM2 = "smollm2"


def _number(context: click.Context, parameter: click.Parameter, value: float) -> float:
    if value != value:
        raise click.BadParameter("it is not a number", context, parameter)
    return value


def model_options(command: _Command) -> _Command:
    """The options that say which model, and how it speaks."""
    for option in reversed((
        click.option("--model", default=_SMOLLM2, show_default=True, metavar="NAME", help="smollm2, or a GGUF file."),
        click.option("--temperature", default=0.0, show_default=True, type=click.FloatRange(0, 100), callback=_number,
                     help="How far to stray from the likeliest token: 0 never does."),
        click.option("--max-tokens", "most", default=256, show_default=True, type=click.IntRange(1)),
        click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="For temperatures above 0."),
    )):  # fmt: skip
        command = option(command)
    return command


def open_model(name: str) -> Llama:
    """The model of that name; smollm2 is fetched at its first use. A file that is no such model is misuse."""
    from kina.models.llama import Llama
    from kina.models.smollm2 import MEGABYTES, fetch_model, model_path

    if name == _SMOLLM2 and not Path(name).exists():
        if not model_path().exists():
            click.echo(f"fetching the model, once ({MEGABYTES} MB) ...", err=True)
        return Llama.open(fetch_model())
    if not Path(name).exists():
        raise Misuse(f"there is no model {name}: it is {_SMOLLM2}, or the path of a GGUF file of a LLaMA model")
    try:
        return Llama.open(name)
    except KinaError as unfit:
        raise Misuse(str(unfit)) from None


@dataclass(slots=True)
class Speed:
    """How long a model took to read a prompt, and to write after it."""

    started: float = field(default_factory=time.perf_counter)
    read: int = 0
    first: float = 0.0
    written: int = 0
    last: float = 0.0

    def timed(self, tokens: Iterator[int], prompt: int) -> Iterator[int]:
        """The same tokens, with the times taken at which they come."""
        self.read, self.started = prompt, time.perf_counter()
        for token in tokens:
            self.last = time.perf_counter()
            self.first = self.first or self.last
            self.written += 1
            yield token

    @property
    def text(self) -> str:
        """`31 tokens read in 0.21 s (148/s), 40 written in 0.9 s (44/s)`."""
        reading = max((self.first or time.perf_counter()) - self.started, 1e-9)
        writing = max(self.last - self.first, 1e-9)
        later = self.written - 1
        rate = f" ({later / writing:.0f}/s)" if later > 0 else ""
        return (f"{self.read} tokens read in {reading:.2f} s ({self.read / reading:.0f}/s), "
                f"{self.written} written in {writing:.2f} s{rate}")  # fmt: skip


def say(tokenizer: Any, tokens: Iterator[int], heard: list[str] | None = None) -> None:
    """Prints a text as it comes; what was printed goes into `heard` too."""
    from kina.models.chat import texts

    for text in texts(tokenizer, tokens):
        if heard is not None:
            heard.append(text)
        sys.stdout.write(text)
        sys.stdout.flush()
