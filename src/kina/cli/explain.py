"""`kina explain`: an error code's page, or what the compiler made of a program."""

from __future__ import annotations

import re
import sys

import click

from kina import pipeline
from kina.cli.common import Misuse, checked_without_errors, find_function, split_target, wants_colour
from kina.diagnostics.names import nearest
from kina.host.module import Stage, make_module


@click.command("explain")
@click.option("--core", "stage", flag_value="core", help="Typed core, as Kina that checks again.")
@click.option("--decompose", is_flag=True, help="With --core: softmax and its like as what they are made of.")
@click.option("--kernels", "stage", flag_value="kernels", default=True, help="Fused kernels (the default).")
@click.option("--llvm", "stage", flag_value="llvm", help="LLVM assembly.")
@click.argument("target", metavar="CODE|FILE[:FUNCTION]")
def command(stage: Stage, decompose: bool, target: str) -> None:
    """Explain an error code (K0301), or show what the compiler makes of a program."""
    if re.fullmatch(r"[Kk]\d+", target):
        _show_page(target.upper())
        return
    if decompose and stage != "core":
        raise Misuse("--decompose goes with --core")
    if decompose:
        stage = "decomposed"
    path, name = split_target(target)
    checked = checked_without_errors(path)
    if name is None and stage == "core":
        click.echo(pipeline.core_text(*checked.elaboration.program.functions.values()), nl=False)
        return
    module = make_module(checked)
    names = list(checked.elaboration.program.functions) if name is None else [name]
    for name in names:
        click.echo(find_function(module, path, name).explain(stage).rstrip("\n") + "\n")


def _show_page(code: str) -> None:
    from kina.diagnostics.pages import all_codes, page

    text = page(code)
    if text is None:
        close = nearest(code, all_codes())
        raise Misuse(f"there is no error code {code}" + (f"; did you mean {close}?" if close else ""))
    if not sys.stdout.isatty():
        click.echo(text)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console(no_color=not wants_colour(sys.stdout)).print(Markdown(text))

