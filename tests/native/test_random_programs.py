"""Random programs: native code on one thread and on two, against the reference interpreter."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kina import native
from kina.core.interpreter import run
from kina.core.ir import Apply, Function, Parameter
from kina.core.printer import print_program
from kina.dims.dim import variable
from kina.kernels import fuse
from kina.native.runtime import set_threads
from kina.ops.shape import Concat
from kina.passes.simplify import simplify
from kina.types import DType

sys.path.insert(0, str(Path(__file__).parent))
from random_programs import LAYOUTS, Builder, Choose, draw_array, draw_sizes, lay_out

MACHINE = native.Machine.host()
TOLERANCE = {DType.F64: 1e-9, DType.F32: 2e-3, DType.BF16: 0.15}
"""By the least exact dtype that a program computes with."""
LARGEST = 1e4
"""Beyond this, differences of rounding are no longer told from faults."""


@pytest.fixture(autouse=True)
def no_cache_on_disk(monkeypatch):
    monkeypatch.setenv("KINA_CACHE", "0")
    yield
    set_threads(None)


def compare(function: Function, sizes: dict[str, int], inputs: list[np.ndarray], executable: native.Executable) -> None:
    want = run(function, sizes, inputs)
    set_threads(1)
    got = executable.run(sizes, inputs)
    set_threads(2)
    again = executable.run(sizes, inputs)
    used = {v.type.dtype for v in (*function.inputs, *(s.result for s in function.statements if isinstance(s, Apply)))}
    worst = max(TOLERANCE.get(dtype, 0) for dtype in used)
    for value, x, y, z in zip(function.outputs, got, want, again, strict=True):
        assert x.shape == y.shape and x.dtype == y.dtype
        assert x.tobytes() == z.tobytes(), "a result depends on the number of threads"
        limit = worst if value.type.dtype in TOLERANCE else 0
        wide, expected = x.astype(np.float64), y.astype(np.float64)
        with np.errstate(all="ignore"):
            usable = ~(np.abs(expected) > LARGEST)
        np.testing.assert_allclose(wide[usable], expected[usable], rtol=limit, atol=limit)


def try_program(choose: Choose[Any], exact: bool, steps: int, seed: int, machine: native.Machine = MACHINE) -> None:
    function = Builder(choose, exact).build(steps)
    executable = native.Executable(fuse(simplify(function)), machine, worth_a_thread=0)
    rng = np.random.default_rng(seed)
    try:
        for _ in range(3):
            sizes = draw_sizes(choose, function)
            inputs = [lay_out(draw_array(v.type, sizes, rng), choose(LAYOUTS)) for v in function.inputs]
            compare(function, sizes, inputs, executable)
    except AssertionError as fault:
        fault.add_note(f"at {sizes}:\n{print_program(function)}")
        raise


def test_nested_pieces_cut_at_other_places_are_chosen_from_at_their_own_bounds():
    b = Builder(lambda options: options[0], exact=True)
    a = variable("A")
    x, y, z = (b.input(DType.I64, (a,)) for _ in range(3))
    pair = b.apply(Concat(0), x, y)
    left = b.apply(Concat(0), pair, z)
    right = b.apply(Concat(0), z, pair)
    total = b.binary("add", left, right)
    function = Function("f", ("A", "B", "C"), (), tuple(Parameter(v.name, v) for v in b.inputs), total.type,
                        tuple(b.statements), total)  # fmt: skip
    executable = native.Executable(fuse(function), MACHINE, worth_a_thread=0)
    for size in (0, 1, 5):
        inputs = [np.arange(size) + 10 * n for n in range(3)]
        compare(function, {"A": size, "B": 0, "C": 0}, inputs, executable)


FEW = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@FEW
@given(st.data(), st.booleans(), st.integers(1, 8), st.integers(0, 9))
def test_native_code_agrees_with_the_reference_on_random_programs(data, exact, steps, seed):
    try_program(lambda options: data.draw(st.sampled_from(options)), exact, steps, seed)


@pytest.mark.skipif(MACHINE.vector_bytes < 64, reason="needs a CPU with AVX-512 and so AVX2")
@pytest.mark.parametrize("machine", [native.Machine.avx2(), native.Machine.sse2()], ids=["avx2", "sse2"])
def test_programs_run_on_other_instruction_sets(machine):
    for seed in range(1000, 1030):
        generator = random.Random(seed)

        def choose(options: Any, generator: random.Random = generator) -> Any:
            return generator.choice(list(options))

        try_program(choose, bool(seed % 2), 1 + seed % 9, seed, machine)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs mprotect of the C library")
def test_no_program_reads_or_writes_outside_its_arrays():
    script = Path(__file__).parent / "guarded.py"
    done = subprocess.run(
        [sys.executable, str(script), "0", "40"], capture_output=True, text=True, env={**os.environ, "KINA_CACHE": "0"}
    )
    assert done.returncode == 0, f"seed {done.stdout.split()[-1:]}: exit {done.returncode}\n{done.stderr[-2000:]}"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs mprotect of the C library")
@pytest.mark.parametrize(("at_start", "place"), [(False, 8), (True, -1)])
def test_the_guard_pages_catch_a_read_outside(at_start, place):
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        f"import ctypes; from guarded import guarded; x = guarded((8,), 'f4', at_start={at_start})\n"
        f"ctypes.cast(x.ctypes.data, ctypes.POINTER(ctypes.c_float))[{place}]"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert done.returncode < 0
