"""From LLVM IR to machine code in this process.

IR is verified, optimised as far as asked, compiled to an object by LLVM's code generator, and linked into
the process by ORC's LLJIT (each program is its own dynamic library, unloaded when its `Loaded` is dropped).
Objects come from the cache on disk where they can: then LLVM only links, within a millisecond.

Kina emits explicit vectors, which need no IR passes to be fast; `level=0` therefore runs none
(the code generator itself always optimises), and `level=2` runs LLVM's O2 pipeline.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from kina.diagnostics import KinaError
from kina.native.machine import Machine
from kina.native.object_cache import ObjectCache, cache_key

_FORMAT = "1"  # raise when the meaning of a cached object changes without its IR changing

# Guards LLVM's linker state, and, held across fork(), keeps a child from inheriting LLVM's own lock taken.
process_lock = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=process_lock.acquire, after_in_parent=process_lock.release, after_in_child=process_lock.release
    )


@dataclass(frozen=True, slots=True)
class Loaded:
    """Machine code in this process. Its addresses are valid as long as this object lives."""

    addresses: Mapping[str, int]
    from_cache: bool
    _library: Any = field(repr=False, compare=False)

    def address(self, entry: str) -> int:
        """The address of an entry point that was asked for when loading."""
        return self.addresses[entry]


def load(
    ir: object,
    machine: Machine,
    entries: Iterable[str],
    *,
    level: int = 0,
    key: str | None = None,
    symbols: Mapping[str, int] | None = None,
    cache: ObjectCache | None = None,
) -> Loaded:
    """Compiles and links a module, and gives the addresses of its `entries`.

    `ir` is LLVM IR text, an llvmlite `ir.Module`, or a function that returns either, called only if the object is
    not cached; then `key` must tell the program from every other. `symbols` are addresses of
    external functions; others are looked up in the process (libc, libm). Raises `KinaError` if the IR
    is not valid, or an external symbol is missing.
    """
    store = ObjectCache.default() if cache is None else cache
    source = _text(ir) if key is None else ir
    name = object_key(str(source) if key is None else "key:" + key, machine, level)
    cached = store.load(name)
    if cached is not None:
        try:
            return _link(cached, entries, symbols or {}, from_cache=True)
        except KinaError:
            store.discard(name)  # whole, yet unusable (made by another build of LLVM, say): made afresh below
    compiled = compile_object(source, machine, level=level)
    loaded = _link(compiled, entries, symbols or {}, from_cache=False)
    store.store(name, compiled)
    return loaded


def compile_object(ir: object, machine: Machine, *, level: int = 0) -> bytes:
    """The object file of a module for `machine`, which need not be the host. Raises `KinaError` on invalid IR."""
    with process_lock:
        module, target = _prepare(ir, machine, level)
        return bytes(target.emit_object(module))


def assembly(ir: object, machine: Machine, *, level: int = 0) -> str:
    """The assembly text of a module for `machine`, to be read by people. Raises `KinaError` on invalid IR."""
    with process_lock:
        module, target = _prepare(ir, machine, level)
        return str(target.emit_assembly(module))


def object_key(ir: str, machine: Machine, level: int) -> str:
    """The name in the cache of the object of `ir`: changes with all that the object depends on."""
    return cache_key(_FORMAT, _versions(), machine.triple, machine.cpu, machine.features, str(level), ir)


def _text(ir: object) -> str:
    return str(ir() if callable(ir) else ir)


@cache
def _versions() -> str:
    import llvmlite

    return f"llvmlite {llvmlite.__version__} llvm {_llvm().llvm_version_info}"


@cache
def _llvm() -> Any:
    """llvmlite's binding, imported at first use: it takes longer than everything else in `import kina`."""
    import llvmlite.binding as llvm

    with process_lock:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
    return llvm


@cache
def _target_machine(triple: str, cpu: str, features: str) -> Any:
    llvm = _llvm()
    if triple != llvm.get_process_triple():
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(triple)
    return target.create_target_machine(cpu=cpu, features=features, opt=3, reloc="pic")


def _prepare(ir: object, machine: Machine, level: int) -> tuple[Any, Any]:
    """The module, verified, made for `machine` and optimised; and the target machine that emits it."""
    llvm = _llvm()
    target = _target_machine(machine.triple, machine.cpu, machine.features)
    try:
        module = llvm.parse_assembly(_text(ir))
        module.verify()
    except RuntimeError as error:
        raise KinaError(f"internal error: the compiler made invalid LLVM IR: {error}") from error
    module.triple = machine.triple
    module.data_layout = str(target.target_data)
    if level:
        _optimise(module, target, level)
    return module, target


def _optimise(module: Any, target: Any, level: int) -> None:
    llvm = _llvm()
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    # Kernels are written unrolled where it pays; doing it again doubles the time to compile and gains nothing.
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = level >= 2
    builder = llvm.create_pass_builder(target, options)
    builder.getModulePassManager().run(module, builder)


@cache
def _jit() -> Any:
    jit = _llvm().create_lljit_compiler(use_jit_link=True)
    # Threads may still be inside its code while the interpreter takes itself down: never freed.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(jit))
    return jit


_library_number = 0


def _link(code: bytes, entries: Iterable[str], symbols: Mapping[str, int], *, from_cache: bool) -> Loaded:
    global _library_number
    names = tuple(entries)
    builder = _llvm().JITLibraryBuilder().add_object_img(code).add_current_process()
    for symbol, address in symbols.items():
        builder.import_symbol(symbol, address)
    for entry in names:
        builder.export_symbol(entry)
    with process_lock:
        _library_number += 1
        try:
            library = builder.link(_jit(), f"kina.{_library_number}")
        except RuntimeError as error:
            raise KinaError(f"internal error: compiled code could not be linked: {error}") from error
    return Loaded({entry: library[entry] for entry in names}, from_cache, library)
