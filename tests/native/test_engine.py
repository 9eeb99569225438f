"""Loading LLVM IR: from text to addresses, through the cache and without it."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kina.diagnostics import KinaError
from kina.native.engine import assembly, compile_object, load, object_key
from kina.native.machine import Machine, _parse_size
from kina.native.object_cache import ObjectCache

ADD_SEVEN = "define i64 @f(i64 %x) { %y = add i64 %x, 7\n ret i64 %y }"
NO_CACHE = ObjectCache(None)


def call(address: int, x: int) -> int:
    return int(ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)(x))


@pytest.mark.parametrize("level", [0, 2])
def test_ir_becomes_callable_code(level: int) -> None:
    loaded = load(ADD_SEVEN, Machine.host(), ["f"], level=level, cache=NO_CACHE)
    assert call(loaded.address("f"), 35) == 42


def test_the_second_load_comes_from_the_cache_and_does_not_ask_for_the_ir(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path)
    first = load(lambda: ADD_SEVEN, Machine.host(), ["f"], key="seven", cache=cache)

    def unwanted() -> str:
        raise AssertionError("the IR was asked for")

    second = load(unwanted, Machine.host(), ["f"], key="seven", cache=cache)
    assert (first.from_cache, second.from_cache) == (False, True)
    assert call(second.address("f"), 1) == 8


def test_a_cached_file_that_is_no_object_is_rebuilt_and_never_run(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path)
    name = object_key(ADD_SEVEN, Machine.host(), 0)
    cache.store(name, b"not an object at all")
    loaded = load(ADD_SEVEN, Machine.host(), ["f"], cache=cache)
    assert not loaded.from_cache
    assert call(loaded.address("f"), 1) == 8
    assert load(ADD_SEVEN, Machine.host(), ["f"], cache=cache).from_cache


def test_the_key_changes_with_the_machine_and_the_level() -> None:
    host = Machine.host()
    keys = {object_key(ADD_SEVEN, m, level) for m in (host, Machine.avx2(), Machine.neon()) for level in (0, 2)}
    assert len(keys) == 6


def test_invalid_ir_and_missing_symbols_are_clear_errors() -> None:
    with pytest.raises(KinaError, match="invalid LLVM IR"):
        load("define i64 @f() { ret i32 0 }", Machine.host(), ["f"], cache=NO_CACHE)
    with pytest.raises(KinaError, match="could not be linked"):
        load(ADD_SEVEN, Machine.host(), ["g"], cache=NO_CACHE)


def test_given_symbols_are_linked() -> None:
    callback = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda x: x * 10)
    address = ctypes.cast(callback, ctypes.c_void_p).value
    assert address is not None
    ir = "declare i64 @given(i64)\ndefine i64 @f(i64 %x) { %y = call i64 @given(i64 %x)\n ret i64 %y }"
    loaded = load(ir, Machine.host(), ["f"], symbols={"given": address}, cache=NO_CACHE)
    assert call(loaded.address("f"), 4) == 40


def test_several_threads_may_load_at_once(tmp_path: Path) -> None:
    results: dict[int, int] = {}

    def work(n: int) -> None:
        for step in range(5):
            ir = f"define i64 @f(i64 %x) {{ %y = add i64 %x, {n * 100 + step}\n ret i64 %y }}"
            loaded = load(ir, Machine.host(), ["f"], cache=ObjectCache(tmp_path))
            results[n * 100 + step] = call(loaded.address("f"), 0)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 20
    assert all(key == value for key, value in results.items())


def test_objects_and_assembly_can_be_made_for_other_machines() -> None:
    vector = "define <8 x float> @f(<8 x float> %x) { %y = fadd <8 x float> %x, %x\n ret <8 x float> %y }"
    assert compile_object(vector, Machine.neon())[:4] == b"\x7fELF"
    assert "ymm" in assembly(vector, Machine.avx2())
    assert "ymm" not in assembly(vector, Machine.sse2())
    assert "zmm" in assembly(vector.replace("8 x", "16 x"), Machine.avx512())


def test_importing_the_engine_does_not_import_llvm() -> None:
    code = "import sys, kina.native.engine, kina.native.machine; assert 'llvmlite' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_host_is_described_plausibly() -> None:
    host = Machine.host()
    assert host.vector_bytes in (16, 32, 64)
    assert host.cores >= 1
    assert 8 * 1024 <= host.l1d <= host.l2


@pytest.mark.parametrize(("text", "size"), [("48K", 49152), ("2M", 2 << 20), ("1G", 1 << 30), ("512", 512), ("?", 0)])
def test_cache_sizes_are_read_in_sysfs_notation(text: str, size: int) -> None:
    assert _parse_size(text) == size
