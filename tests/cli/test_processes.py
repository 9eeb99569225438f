"""Kina as a process: what an import costs, terminals, pipes, interrupts."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

GOOD = "let f [A] (x : F32[A]) : F32[A] = x + x\n"
BAD = "let f [A, B] (x : F32[A]) (y : F32[B]) : F32[A] = x + y\n"


def kina(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kina", *arguments],
        capture_output=True, text=True, encoding="utf-8", env=os.environ | environment, timeout=60,
    )  # fmt: skip


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.fixture
def good(tmp_path: Path) -> str:
    path = tmp_path / "good.kina"
    path.write_text(GOOD)
    return str(path)


@pytest.fixture
def bad(tmp_path: Path) -> str:
    path = tmp_path / "bad.kina"
    path.write_text(BAD)
    return str(path)


HEAVY = ("llvmlite", "z3", "rich", "click", "gguf", "jax", "torch", "numpy", "ml_dtypes")


def test_importing_kina_brings_in_no_heavy_library_and_is_quick() -> None:
    code = f"""
import sys, time
start = time.perf_counter()
import kina
took = time.perf_counter() - start
assert not [name for name in {HEAVY} if name in sys.modules]
assert set(kina.__all__) <= set(dir(kina))
print(took)
"""
    assert min(float(python(code)) for _ in range(3)) < 0.1


def test_every_public_name_is_there_when_it_is_asked_for() -> None:
    assert python("import kina; print(all(getattr(kina, name) for name in kina.__all__))") == "True\n"
    assert "has no attribute 'nope'" in python("import kina\ntry: kina.nope\nexcept AttributeError as e: print(e)")


def test_checking_a_program_loads_neither_the_code_generator_nor_rich(good: str) -> None:
    code = f"""
import sys
from kina.cli import main
try: main(["check", {good!r}])
except SystemExit as stop: assert stop.code == 0
print([name for name in ("llvmlite", "rich", "gguf", "jax", "ml_dtypes", "z3") if name in sys.modules])
"""
    assert python(code).splitlines()[-1] == "[]"


def test_the_module_runs_as_a_program(good: str, bad: str) -> None:
    assert kina("check", good).returncode == 0
    result = kina("check", bad)
    assert (result.returncode, result.stderr) == (1, "")
    assert "┌─" in result.stdout


def test_a_terminal_without_the_characters_gets_stand_ins(bad: str) -> None:
    result = kina("check", bad, PYTHONIOENCODING="ascii", LC_ALL="C")
    assert result.returncode == 1
    assert "?" in result.stdout
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_only_terminals_get_colour(bad: str, environment: dict[str, str], coloured: bool) -> None:
    status, output = on_a_terminal("check", bad, **environment)
    assert status == 1
    assert b"bad.kina:1:" in output
    assert (b"\x1b[" in output) == coloured


def test_a_terminal_gets_pages_set_as_text() -> None:
    status, output = on_a_terminal("explain", "K0201")
    assert status == 0
    assert b"K0201" in output
    assert b"```" not in output
    assert b"```" in kina("explain", "K0201").stdout.encode()


def on_a_terminal(*arguments: str, **environment: str) -> tuple[int, bytes]:
    """Exit status and output of a process that writes to a pseudo-terminal."""
    base = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm"} | environment
    master, slave = pty.openpty()
    process = subprocess.Popen([sys.executable, "-m", "kina", *arguments], stdout=slave, stderr=slave, env=base)
    os.close(slave)
    output = b""
    while chunk := _read(master):
        output += chunk
    os.close(master)
    return process.wait(60), output


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # the other side is closed
        return b""


def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    many = tmp_path / "many.kina"
    many.write_text("".join(f"let f{k} [A, B] (x : F32[A]) (y : F32[B]) : F32[A] = x + y\n" for k in range(300)))
    process = subprocess.Popen(
        [sys.executable, "-m", "kina", "check", str(many)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(60) == 141


def test_an_interrupt_ends_quietly_with_130() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "kina", "fmt", "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    time.sleep(3)  # until it waits for its input, on a busy machine too
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors


def test_json_is_printed_where_the_terminal_is_ascii(bad: str) -> None:
    result = kina("check", "--json", bad, PYTHONIOENCODING="ascii")
    assert len(json.loads(result.stdout)) == 1
