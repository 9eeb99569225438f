"""Runs every checker on its version of the ten functions and prints what each found.

    make comparison                 # the table, and what each checker said
    make comparison ARGS=--write    # the table into docs/comparison.md too

The environment holds the tools, so this runs nowhere else.
"""

from __future__ import annotations

import ast
import importlib.metadata
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

FOLDER = Path(__file__).parent
PAGE = FOLDER.parent / "comparison.md"
BEGIN, END = "<!-- table: make comparison -->\n", "<!-- end -->\n"

Faults = Mapping[str, str | None]
"""What a checker found by function; None where it accepts it."""


def kina() -> Faults:
    """Errors by function, from `kina check`."""
    from kina import pipeline
    from kina.diagnostics import Severity
    from kina.source import Source

    checked = pipeline.check(Source("programs.kina", (FOLDER / "programs.kina").read_text()))
    context = checked.elaboration.state.context
    return {
        name: next((d.message for d in found.diagnostics if d.severity is Severity.ERROR), None)
        for name, found in context.findings.items()
    }


def pyrefly(file: str) -> Faults:
    """Errors by function, from `pyrefly check`: an error belongs to the function whose lines it stands in."""
    path = FOLDER / file
    command = [str(Path(sys.executable).with_name("pyrefly")), "check", "--output-format", "json"]
    command += ["--config", str(FOLDER / "pyrefly.toml"), "--python-interpreter-path", sys.executable, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout.startswith("{"):
        raise SystemExit(f"pyrefly gave no result:\n{done.stderr}")
    errors = [e for e in json.loads(done.stdout)["errors"] if e.get("severity", "error") == "error"]
    functions = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)]
    found: dict[str, str | None] = {f.name: None for f in functions}
    for error in errors:
        owner = next((f for f in functions if f.lineno <= error["line"] <= (f.end_lineno or f.lineno)), None)
        if owner is None:
            raise SystemExit(f"pyrefly found something outside of the functions: {error}")
        found[owner.name] = found[owner.name] or error["description"].replace("\n", "; ")
    return found


def jaxtyping() -> tuple[Faults, Faults]:
    """What calls of the functions raise: for sizes without coincidences, and for sizes that may hide a mistake."""
    import with_jaxtyping

    first: dict[str, str | None] = {}
    last: dict[str, str | None] = {}
    for name, calls in with_jaxtyping.CALLS.items():
        for version in (name, f"{name}_wrong"):
            faults = [_call(getattr(with_jaxtyping, version), arguments) for arguments in calls]
            first[version], last[version] = faults[0], faults[-1]
    return first, last


def jax_export() -> Faults:
    """What `jax.export` raises while it traces with symbolic sizes."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import with_jax_export

    names = [version for name in with_jax_export.SIGNATURES for version in (name, f"{name}_wrong")]
    return {name: with_jax_export.fault(name) for name in names}


def more() -> Mapping[str, Faults]:
    """What the page says besides the table."""
    import with_jax_export
    import with_jaxtyping

    annotated = _call(with_jaxtyping.loss_annotated_wrong, with_jaxtyping.CALLS["loss"][0])
    traced = {name: with_jax_export.fault(name) for name in with_jax_export.MORE}
    traced["flatten_wrong, called"] = with_jax_export.called_fault()
    return {
        "Pyrefly": pyrefly("more_with_pyrefly.py"),
        "jaxtyping": {"loss_annotated_wrong": annotated},
        "JAX export": traced,
    }


def _call(function: Callable[..., object], arguments: tuple[object, ...]) -> str | None:
    """What a call raises, whatever it is; None where it goes through."""
    try:
        function(*arguments)
    except Exception as refusal:
        return f"{type(refusal).__name__}: {str(refusal).partition(chr(10))[0]}"
    return None


def verdict(found: Faults, name: str) -> str:
    right, wrong = found[name] is None, found[f"{name}_wrong"] is None
    if right:
        return "accepts both" if wrong else "**tells them apart**"
    return "the wrong way round" if wrong else "rejects both"


def table(columns: Mapping[str, Faults], hidden: Faults) -> str:
    """One row a function, one column a checker, and how often each told right from wrong."""
    names = [name for name in columns["Kina"] if not name.endswith("_wrong")]
    rows = [["", *columns], ["---"] * (len(columns) + 1)]
    for name in names:
        cells = []
        for tool, found in columns.items():
            cell = verdict(found, name)
            if tool.startswith("jaxtyping") and "apart" in cell:
                cell += ", at a call" + (", not for all sizes" if hidden[f"{name}_wrong"] is None else "")
            cells.append(cell)
        rows.append([f"`{name}`", *cells])
    apart = [str(sum("apart" in verdict(found, name) for name in names)) for found in columns.values()]
    rows.append(["told apart", *(f"{n} of {len(names)}" for n in apart)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def versions() -> str:
    packages = ("pyrefly", "pyrefly-torch-stubs", "jaxtyping", "beartype", "torch", "jax")
    listed = ", ".join(f"{p} {importlib.metadata.version(p)}" for p in packages)
    return f"Python {sys.version.split()[0]}, {listed}"


def main() -> None:
    sys.path.insert(0, str(FOLDER))
    calls, hidden = jaxtyping()
    columns = {"Kina": kina(), "Pyrefly": pyrefly("with_pyrefly.py"), "jaxtyping": calls, "JAX export": jax_export()}
    text = table(columns, hidden)
    print(f"{versions()}\n\n{text}")
    for tool, found in columns.items():
        print(f"{tool}:")
        _show({name: fault for name, fault in found.items() if fault is not None})
    for tool, found in more().items():
        print(f"{tool}, besides:")
        _show(found)
    _compare(text, write="--write" in sys.argv)


def _show(found: Faults) -> None:
    for name, fault in found.items():
        print(f"  {name}: {'accepted' if fault is None else fault.splitlines()[0][:200]}")


def _compare(text: str, *, write: bool) -> None:
    """The page shows the table that was found, or it is put there."""
    shown = PAGE.read_text()
    head, _, rest = shown.partition(BEGIN)
    _, _, tail = rest.partition(END)
    if write:
        PAGE.write_text(f"{head}{BEGIN}\n{versions()}.\n\n{text}\n{END}{tail}")
    elif text not in shown:
        raise SystemExit(f"{PAGE.name} shows another table: run it with --write, and read the text around it again")


if __name__ == "__main__":
    main()
