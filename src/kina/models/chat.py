"""Conversations as text, by the template that a model's file brings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kina.diagnostics import KinaError
from kina.host.gguf_file import GGUFFile

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Message = Mapping[str, str]
"""`{"role": "user", "content": "Hello"}`; roles are system, user and assistant."""


def render_chat(file: GGUFFile, messages: Sequence[Message]) -> str:
    """The prompt for a conversation, up to where the model speaks next.

    The template comes from the file and is not trusted: it runs in jinja2's sandbox. Raises KinaError where there is
    none, it fails or refuses the messages, or jinja2 is not installed.
    """
    try:
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        raise KinaError("jinja2 is not installed; it comes with: pip install 'kina-lang[models]'") from None

    def refuse(reason: object) -> None:
        raise KinaError(f"{file.path}: the chat template refuses this conversation: {reason}")

    # Blocks are trimmed as in the library for which these templates are written.
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.globals["raise_exception"] = refuse
    try:
        template = environment.from_string(file.chat_template)
        return str(template.render(
            messages=[dict(message) for message in messages], add_generation_prompt=True,
            bos_token=_token(file, "bos"), eos_token=_token(file, "eos"),
        ))  # fmt: skip
    except KinaError:
        raise
    except Exception as fault:  # a template is a program: it can fail in any way
        raise KinaError(f"{file.path}: the chat template fails: {type(fault).__name__}: {fault}") from None


def _token(file: GGUFFile, kind: str) -> str:
    """The text of the token of that kind, "" where the file has none."""
    number, tokens = file.metadata.get(f"tokenizer.ggml.{kind}_token_id"), file.strings("tokenizer.ggml.tokens")
    return tokens[number] if isinstance(number, int) and 0 <= number < len(tokens) else ""


def texts(tokenizer: Tokenizer, tokens: Iterator[int]) -> Iterator[str]:
    """Tokens as text, piece by piece as they come: a character whose bytes are not all there waits for the next."""
    waiting: list[int] = []
    for token in tokens:
        waiting.append(token)
        text = tokenizer.decode(waiting)
        if not text.endswith("\N{REPLACEMENT CHARACTER}") or len(waiting) > _LONGEST_CHARACTER:
            waiting.clear()
            yield text
    if waiting:
        yield tokenizer.decode(waiting)


_LONGEST_CHARACTER = 4
"""Bytes of a character in UTF-8, and so the most tokens that one is made of."""
