"""`kina chat`: a conversation with a language model."""

from __future__ import annotations

import sys

import click

from kina.cli.talking import Speed, model_options, open_model, say

_ANSWERED = "\n"


@click.command("chat")
@model_options
@click.option("--system", metavar="TEXT", help="What the model is told before the conversation.")
def command(model: str, temperature: float, most: int, seed: int, system: str | None) -> None:
    """Talk with a language model, a line at a time.

    Ctrl-C ends an answer that is being given; what was said of it stays. Ctrl-D ends the conversation.
    """
    from kina.models.chat import Message, render_chat
    from kina.models.llama import Session

    llama = open_model(model)
    session = Session(llama)
    messages: list[Message] = [{"role": "system", "content": system}] if system is not None else []
    while (line := _line()) is not None:
        if not line.strip():
            continue
        messages.append({"role": "user", "content": line})
        ids = llama.encode(render_chat(llama.file, messages))
        speed = Speed()
        answer: list[str] = []
        tokens = session.generate(ids, most, temperature, seed + len(messages))
        try:
            say(llama.tokenizer, speed.timed(tokens, len(ids)), answer)
        except KeyboardInterrupt:
            click.echo(" [interrupted]", err=True, nl=False)
        click.echo(_ANSWERED)
        click.echo(speed.text, err=True)
        messages.append({"role": "assistant", "content": "".join(answer)})


def _line() -> str | None:
    """What a person says next; None at the end. Ctrl-C drops a line that was begun."""
    while True:
        try:
            if sys.stdin.isatty():
                return input("> ")
            line = sys.stdin.readline()
            return line.rstrip("\n") if line else None
        except EOFError:
            click.echo()
            return None
        except KeyboardInterrupt:
            click.echo()
