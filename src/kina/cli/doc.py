"""`kina doc`: the reference of operations, forms, error codes and modules, in the terminal or as a site."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from kina import std
from kina.cli.common import Misuse, read, show_findings, split_target, wants_colour
from kina.diagnostics.names import nearest
from kina.doc.modules import ModulePage, member_page, module_page
from kina.doc.pages import Page, error_pages, reference


@click.command("doc")
@click.option("--list", "list_", is_flag=True, help="List operations and forms, one a line: name, shapes, summary.")
@click.option("--names", is_flag=True, help="With --list, names only.")
@click.option("-o", "--output", metavar="DIR", help="Write a site: all of the reference, std, and the FILES given.")
@click.argument("targets", nargs=-1, metavar="[NAME|std.nn[.NAME]|FILE[:NAME]]...")
def command(list_: bool, names: bool, output: str | None, targets: Sequence[str]) -> None:
    """Show the reference page of an operation, form, error code, module or function.

    With -o a site is written that is read from disk or served: every operation, form, error and module of the standard
    library, and the modules in FILES. It needs no network, and its search works on the page itself.
    """
    if list_ and (output or targets):
        raise Misuse("--list takes no names and no -o: it lists all")
    if names and not list_:
        raise Misuse("--names goes with --list")
    if list_:
        _list(names)
    elif output is not None:
        _write(Path(output), targets)
    elif targets:
        _show(targets)
    else:
        raise Misuse("say what to show (kina doc softmax, kina doc std.nn), or --list, or -o DIR for a site")


def _list(names: bool) -> None:
    from kina.doc.terminal import listing

    for line in listing(reference().values()):
        click.echo(line.partition(" ")[0] if names else line)


def _show(targets: Sequence[str]) -> None:
    from kina.doc.terminal import show

    for number, page in enumerate([_find(target) for target in targets]):
        if number:
            click.echo()
        show(page, sys.stdout, colour=wants_colour(sys.stdout))


def _find(target: str) -> Page:
    """The page of an operation or form, an error code, a module, or something in a module."""
    known = {**reference(), **_also(), **error_pages()}
    for spelling in (target, target.replace("_", " "), target.upper()):
        if spelling in known:
            return known[spelling]
    if target in std.names():
        return _module(target).page
    if target.startswith("std."):
        return _member(*_split_std(target))
    path, name = split_target(target)
    if path.endswith(".kina") or Path(path).is_file():
        module = _module(path)
        return module.page if name is None else _member(module, name)
    raise Misuse(f"there is no page {target}{_meant(target, known)}")


def _also() -> Mapping[str, Page]:
    """Pages by the other names that they are about: `vmap` has that of `map`."""
    from kina.doc.forms import all_forms

    return {name: reference()[form.name] for form in all_forms() for name in form.names}


def _meant(target: str, known: Mapping[str, Page]) -> str:
    """What was probably meant: what PyTorch calls so, else a name that is spelled nearly so."""
    pytorch = [name for name, page in known.items() if f"{target}(" in page.torch]
    if pytorch:
        return f"; what PyTorch calls {target} is here {' or '.join(pytorch)}"
    close = nearest(target, [*known, *std.names()])
    return f"; did you mean {close}?" if close else " (kina doc --list has all)"


def _split_std(target: str) -> tuple[ModulePage, str]:
    module, _, name = target.rpartition(".")
    if module not in std.names():
        close = nearest(target, std.names())
        meant = f"; did you mean {close}?" if close else f"; there are {', '.join(std.names())}"
        raise Misuse(f"the standard library has no module {target}{meant}")
    return _module(module), name


def _member(module: ModulePage, name: str) -> Page:
    found = member_page(module, name)
    if found is None:
        names = [m.name for m in module.members]
        close = nearest(name, names)
        meant = f"; did you mean {close}?" if close else f"; it has: {', '.join(names) or 'nothing'}"
        raise Misuse(f"{module.page.name} has no {name}{meant}")
    return found


def _module(target: str) -> ModulePage:
    """A module's page. What of a file cannot be parsed is shown on stderr, and the rest is documented."""
    source = std.find(target)
    if source is not None:
        return module_page(source)
    found = module_page(read(target), Path(target).name)
    show_findings(found.errors, sys.stderr)
    return found


def _write(folder: Path, targets: Sequence[str]) -> None:
    for target in targets:
        if target in reference() or target in error_pages():
            raise Misuse(f"-o writes a site with all pages; behind it stand only modules, and {target} is none")
    modules = [_module(name) for name in std.names()]
    modules += [_module(target) for target in targets if target not in std.names()]
    names = [m.page.name for m in modules]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise Misuse(f"two modules are called {', '.join(sorted(twice))}: a site has one page for each name")
    from kina.doc.site import write_site

    try:
        count = write_site(folder, modules)
    except OSError as fault:
        raise Misuse(f"cannot write {folder}: {fault.strerror or fault}") from None
    click.echo(f"wrote {count} pages: {folder / 'index.html'}")
