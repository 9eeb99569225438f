"""`kina run`: calls one function of a program with arrays from files, numbers, or random arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from kina.cli import values
from kina.cli.common import Misuse, checked_without_errors, find_function, split_target
from kina.core.ir import Function as CoreFunction
from kina.diagnostics.names import nearest
from kina.host.api import Backend, executable_of
from kina.host.boundary import head_of
from kina.host.errors import CallError, Head
from kina.host.module import Function, make_module
from kina.types import List, Record, Tensor, Type, in_one, parts


@click.command("run")
@click.option("-o", "--output", metavar="FILE", help="Write the result: .npy (numbered for several) or .npz.")
@click.option("--random", multiple=True, metavar="NAME=2,3", help="A random array of this shape.")
@click.option("--size", "sizes", multiple=True, metavar="NAME=N", help="A size that the shapes leave open.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="For --random and for draws.")
@click.option("--backend", type=click.Choice(["native", "reference"]), default="native", show_default=True)
@click.argument("target", metavar="FILE:FUNCTION")
@click.argument("arguments", nargs=-1, metavar="[NAME=VALUE]...")
def command(
    output: str | None, random: Sequence[str], sizes: Sequence[str], seed: int, backend: Backend,
    target: str, arguments: Sequence[str],
) -> None:  # fmt: skip
    """Run a function of a program.

    VALUE is a .npy file, a number, true or false, or a list ([[1, 2], [3, 4]]). An array inside a tuple parameter is
    named by its place: both.0=x.npy. Without -o a summary of the result is printed.
    """
    if output is not None:
        values.check_output(output)
    function, core = _function(target, backend)
    head = head_of(core)
    given = dict(values.pairs(arguments, "NAME=VALUE"))
    if function.draws:
        given.setdefault("seed", str(seed))
    leaves = _leaves(head, given, values.pairs(random, "--random NAME=2,3"), seed)
    named = {name: _tree(name, type_, leaves) for name, type_ in head.parameters}
    for name, text in values.pairs(sizes, "--size NAME=N").items():
        if name in named or name not in head.dimensions:
            raise Misuse(
                f"{head.function} has no size {name} to give; its sizes: {', '.join(head.dimensions) or 'none'}"
            )
        named[name] = values.read_size(name, text)
    try:
        result = function(**named)
    except CallError as misfit:
        raise Misuse(str(misfit)) from None
    outputs = values.flatten(result)
    lines = values.summaries(outputs) if output is None else [f"wrote {p}" for p in values.write(output, outputs)]
    click.echo("\n".join(lines))


def _function(target: str, backend: Backend) -> tuple[Function, CoreFunction]:
    path, name = split_target(target)
    checked = checked_without_errors(path)
    module = make_module(checked, executable_of(backend))
    if name is None:
        if len(dir(module)) != 1:
            raise Misuse(f"which function of {path}? Say {path}:NAME with one of: {', '.join(dir(module)) or 'none'}")
        (name,) = dir(module)
    return find_function(module, path, name), checked.function(name)


def _leaves(head: Head, given: Mapping[str, str], shapes: Mapping[str, str], seed: int) -> dict[str, Any]:
    """A value for each input tensor, by the name it has on the command line."""
    for name in (*given, *shapes):
        if name not in head.input_names:
            close = nearest(name, head.input_names)
            meant = f"; did you mean {close}?" if close else ""
            raise Misuse(
                f"{head.function} has no input {name}{meant} (inputs: {', '.join(head.input_names) or 'none'})"
            )
        if name in given and name in shapes:
            raise Misuse(f"{name} is given twice, as a value and with --random")
    missing = [name for name in head.input_names if name not in given and name not in shapes]
    if missing:
        raise Misuse(f"{head.function} needs {', '.join(missing)}: give NAME=VALUE or --random NAME=SHAPE")
    # Each input draws from a generator of its own, so that one more option does not change the others' numbers.
    return {
        name: values.read_value(name, given[name], tensor.dtype)
        if name in given
        else values.random_array(name, shapes[name], tensor.dtype, (seed, number))
        for number, (name, tensor) in enumerate(zip(head.input_names, head.inputs, strict=True))
    }


def _tree(path: str, type_: Type, leaves: Mapping[str, Any]) -> Any:
    match type_:
        case Tensor():
            return leaves[path]
        case Record():
            return {label: _tree(f"{path}.{label}", item, leaves) for label, item in type_.fields}
        case List():
            return _tree(path, in_one(type_), leaves)
        case _:
            return tuple(_tree(f"{path}.{label}", item, leaves) for label, item in parts(type_))
