"""Loading, compiling and checking programs from Python."""

from __future__ import annotations

import timeit
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kina
from kina.host.module import Function

GOOD = "let twice [A] (x : F32[A]) : F32[A] = x + x\n"
BAD = "let f [A, B] (x : F32[A]) (y : F32[B]) : F32[A] = x + y\n\nlet g [A] (x : F32[A]) : F32[B] = x\n"


def test_a_file_is_loaded_as_a_module(tmp_path: Path) -> None:
    path = tmp_path / "good.kina"
    path.write_text("\ufeff" + GOOD, encoding="utf-8")
    for where in (path, str(path)):
        module = kina.load(where, backend="reference")
        assert module.twice([1, 2]).tolist() == [2, 4]
        assert module.__file__ == str(path)


def test_a_program_with_errors_raises_all_of_them_rendered(tmp_path: Path) -> None:
    path = tmp_path / "bad.kina"
    path.write_text(BAD)
    with pytest.raises(kina.KinaError) as error:
        kina.load(path)
    text = str(error.value)
    assert text.count("error[K0") == len(error.value.diagnostics) == 2
    assert f"{path}:1:" in text
    assert f"{path}:3:" in text
    assert "\x1b" not in text


def test_compile_names_the_text_in_messages() -> None:
    with pytest.raises(kina.KinaError, match=r"cell 3:1:"):
        kina.compile(BAD, name="cell 3")


def test_warnings_and_notes_do_not_stop_a_program() -> None:
    text = "let f [A] (x : F32[A]) : F32[A] =\n  let assert (A = A) in\n  x\n"
    module = kina.compile(text, backend="reference")
    assert module.f([1.0]).tolist() == [1.0]


def test_check_gives_all_findings_and_raises_nothing(tmp_path: Path) -> None:
    path = tmp_path / "bad.kina"
    path.write_text(BAD)
    found = kina.check(path)
    assert [d.severity for d in found] == ["error", "error"]
    assert [d.span.line for d in found] == [1, 3]
    path.write_text(GOOD)
    assert kina.check(path) == []
    assert kina.check(path, strict=True) != []  # `F32[A]` is sugar


@pytest.mark.parametrize("read", [kina.load, kina.check])
def test_files_that_cannot_be_read_are_refused(tmp_path: Path, read: Any) -> None:
    with pytest.raises(kina.KinaError, match=r"cannot read .*nope\.kina: No such file or directory"):
        read(tmp_path / "nope.kina")
    with pytest.raises(kina.KinaError, match=r"Is a directory"):
        read(tmp_path)
    with pytest.raises(kina.KinaError, match="embedded null"):
        read("a\0b")
    (tmp_path / "raw.kina").write_bytes(b"let \xff")
    with pytest.raises(kina.KinaError, match=r"not UTF-8 text \(byte 4\)"):
        read(tmp_path / "raw.kina")


def test_there_are_two_backends() -> None:
    with pytest.raises(ValueError, match="native and a reference backend, not 'gpu'"):
        kina.compile(GOOD, backend="gpu")  # type: ignore[arg-type]


def test_the_boundary_costs_a_few_microseconds_a_call() -> None:
    module = kina.compile(GOOD, backend="reference")
    core, signature = module.twice._core, module.twice._signature
    x = np.ones(3, np.float32)

    class Nothing:
        """An executable that takes no time."""

        def run(self, sizes: Any, inputs: Any) -> Any:
            return (x,)

    f = Function(core, signature, lambda _: Nothing())
    f(x)
    best = min(timeit.repeat(lambda: f(x), number=200, repeat=50)) / 200
    assert best < 5e-6
