"""`kina generate`: a language model goes on from a text."""

from __future__ import annotations

import sys

import click

from kina.cli.talking import Speed, model_options, open_model, say


@click.command("generate")
@model_options
@click.option("--raw", is_flag=True, help="Go on from the text as it stands, not as a question of a conversation.")
@click.argument("prompt")
def command(model: str, temperature: float, most: int, seed: int, raw: bool, prompt: str) -> None:
    """Let a language model answer PROMPT ("-" reads it from stdin).

    The text goes to stdout as it comes, speeds to stderr.
    """
    from kina.models.chat import render_chat
    from kina.models.llama import Session

    text = sys.stdin.read() if prompt == "-" else prompt
    speed = Speed()
    llama = open_model(model)
    ids = llama.encode(text if raw else render_chat(llama.file, [{"role": "user", "content": text}]))
    say(llama.tokenizer, speed.timed(Session(llama).generate(ids, most, temperature, seed), len(ids)))
    click.echo()
    click.echo(speed.text, err=True)
