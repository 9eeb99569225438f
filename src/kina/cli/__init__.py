"""The command line. Each command is a module of this package, loaded when it is called.

Exit status: 0 fine; 1 errors in a program; 2 misuse, files that cannot be read or written, a machine that is full;
70 a fault in Kina itself; 130 interrupted; 141 the reader of the output went away.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

import click

from kina import __version__

_COMMANDS = ("check", "run", "test", "explain", "doc", "audit", "fmt", "generate", "chat")

FAULT_IN_KINA = 70
_INTERRUPTED = 130
_BROKEN_PIPE = 141


class _Commands(click.Group):
    """Finds a command in the module of its name, so that one command does not pay for another's imports."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        command: click.Command = import_module(f"kina.cli.{name}").command
        return command

    def invoke(self, context: click.Context) -> object:
        """Runs a command. Its output is flushed here, so that a reader that went away is noticed here."""
        try:
            result: object = super().invoke(context)
            sys.stdout.flush()
        except BrokenPipeError:
            # What is left in the buffer has no reader: without this, Python complains when it exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            context.exit(_BROKEN_PIPE)
        return result


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kina", message="%(prog)s %(version)s")
def commands() -> None:
    """Kina: a typed tensor language with a compiler."""


def main(arguments: list[str] | None = None) -> None:
    """Runs the command line and ends the process. No input leads to a traceback (`KINA_DEBUG=1` shows them)."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A terminal that lacks a character shows a stand-in; it is no reason to stop.
            stream.reconfigure(errors="replace")
    sys.exit(_guarded(arguments))


def _guarded(arguments: list[str] | None) -> int:
    from kina.diagnostics import KinaError

    try:
        return commands.main(arguments, prog_name="kina", standalone_mode=False) or 0
    except click.ClickException as misuse:
        misuse.show()
        return misuse.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        return _INTERRUPTED
    except KinaError as error:
        click.echo(str(error), err=True)
        return 1
    except (OSError, MemoryError) as lack:
        # A full disk, too little memory: the machine's, and nothing to report.
        click.echo(f"kina: {lack or 'not enough memory'}", err=True)
        return 2
    except Exception as fault:
        return _report(fault)


def _report(fault: Exception) -> int:
    if os.environ.get("KINA_DEBUG") == "1":
        raise fault
    click.echo(
        f"kina: this is a fault in Kina, not in your program: {type(fault).__name__}: {fault}\n"
        f"Please report it with the program, the command, and what the same command prints with KINA_DEBUG=1"
        f" (kina {__version__}, Python {sys.version.split()[0]}, {sys.platform}).",
        err=True,
    )
    return FAULT_IN_KINA
