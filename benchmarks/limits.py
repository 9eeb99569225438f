"""What the machine can do at best: loops of our own, emitted through LLVM, that only copy, read or multiply.

`copy` streams an array into another with non-temporal stores, `read` sums one, `flops` does nothing but
fused multiply-adds on registers. Each is split over the threads and repeated inside native code.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt

from peers import Candidate, Missing
from workloads import Input, Workload

ACCUMULATORS = 10
SECONDS = 0.02  # that one call should take, so that starting threads does not count
ASSUMED = {"copy": 10e9, "read": 10e9, "flops": 100e9}  # a second, only to choose the repetitions


@dataclass(frozen=True)
class Vector:
    """The machine's vector of f32."""

    lanes: int

    @property
    def type(self) -> str:
        return f"<{self.lanes} x float>"

    @property
    def bytes(self) -> int:
        return 4 * self.lanes

    @staticmethod
    def of_host() -> Vector:
        features = llvm.get_host_cpu_features()
        if features.get("avx512f"):
            return Vector(16)
        return Vector(8 if features.get("avx2") else 4)


def _loop(name: str, parameters: str, before: str, phis: str, body: str, after: str) -> str:
    """A function that does `body` for i in [0, n), and all of that `times` times."""
    return f"""
define float @{name}({parameters}, i64 %n, i64 %times) {{
entry:
  br label %again
again:
  %t = phi i64 [ 0, %entry ], [ %t1, %done ]
{before}
  br label %loop
loop:
  %i = phi i64 [ 0, %again ], [ %i1, %loop ]
{phis}
{body}
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %n
  br i1 %more, label %loop, label %done
done:
  %t1 = add i64 %t, 1
  %repeat = icmp ult i64 %t1, %times
  br i1 %repeat, label %again, label %end
end:
{after}
}}
"""


def _copy(v: Vector) -> str:
    body = "\n".join(
        f"""  %k{k} = add i64 %base, {k}
  %p{k} = getelementptr {v.type}, ptr %from, i64 %k{k}
  %q{k} = getelementptr {v.type}, ptr %to, i64 %k{k}
  %x{k} = load {v.type}, ptr %p{k}, align {v.bytes}
  store {v.type} %x{k}, ptr %q{k}, align {v.bytes}, !nontemporal !0"""
        for k in range(4)
    )
    return _loop("copy", "ptr %from, ptr %to", "", "", "  %base = mul i64 %i, 4\n" + body, "  ret float 0.0")


def _sums(v: Vector, step: Callable[[int], str]) -> tuple[str, str, str]:
    """Accumulators carried around the loop, one `step` for each, and their sum returned at the end."""
    phis = "\n".join(
        f"  %a{k} = phi {v.type} [ zeroinitializer, %again ], [ %b{k}, %loop ]" for k in range(ACCUMULATORS)
    )
    body = "\n".join(step(k) for k in range(ACCUMULATORS))
    total = [f"  %s0 = fadd {v.type} %b0, zeroinitializer"]
    total += [f"  %s{k} = fadd {v.type} %s{k - 1}, %b{k}" for k in range(1, ACCUMULATORS)]
    total += [f"  %r = extractelement {v.type} %s{ACCUMULATORS - 1}, i32 0", "  ret float %r"]
    return phis, body, "\n".join(total)


def _read(v: Vector) -> str:
    def step(k: int) -> str:
        return f"""  %k{k} = add i64 %base, {k}
  %p{k} = getelementptr {v.type}, ptr %from, i64 %k{k}
  %x{k} = load {v.type}, ptr %p{k}, align {v.bytes}
  %b{k} = fadd {v.type} %a{k}, %x{k}"""

    phis, body, after = _sums(v, step)
    return _loop("read", "ptr %from", "", phis, f"  %base = mul i64 %i, {ACCUMULATORS}\n" + body, after)


def _flops(v: Vector) -> str:
    def step(k: int) -> str:
        return f"  %b{k} = call {v.type} @llvm.fmuladd({v.type} %a{k}, {v.type} %x, {v.type} %y)"

    phis, body, after = _sums(v, step)
    before = f"""  %x0 = insertelement {v.type} zeroinitializer, float %f, i32 0
  %x = shufflevector {v.type} %x0, {v.type} zeroinitializer, <{v.lanes} x i32> zeroinitializer
  %y = fadd {v.type} %x, %x"""
    return _loop("flops", "float %f", before, phis, body, after)


class Limits:
    """A peer whose answers are the least times possible."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.pool = ThreadPoolExecutor(threads)
        self.vector = Vector.of_host()
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        source = _copy(self.vector) + _read(self.vector) + _flops(self.vector)
        declared = f"declare {self.vector.type} @llvm.fmuladd({', '.join([self.vector.type] * 3)})\n!0 = !{{i32 1}}\n"
        machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3
        )
        self.engine = llvm.create_mcjit_compiler(llvm.parse_assembly(source + declared), machine)
        self.engine.finalize_object()

    def candidates(self, workload: Workload, inputs: list[Input]) -> Mapping[str, Candidate]:
        limit = workload.limit
        if limit is None:
            raise Missing("no limit of this kind")
        times = max(1, int(SECONDS / (limit.amount / ASSUMED[limit.kind])))
        # A thread's share, in iterations of the loop; what is less than one iteration is left out.
        each = {"copy": 4 * self.vector.bytes, "read": ACCUMULATORS * self.vector.bytes}
        per_iteration = each.get(limit.kind, 2 * ACCUMULATORS * self.vector.lanes)
        share = max(1, limit.amount // self.threads // per_iteration)
        calls = [self._call(limit.kind, share, share * per_iteration, times) for _ in range(self.threads)]
        return {limit.kind: Candidate(lambda: [f.result() for f in [self.pool.submit(c) for c in calls]], times)}

    def _call(self, kind: str, share: int, size: int, times: int) -> Callable[[], float]:
        address = self.engine.get_function_address(kind)
        if kind == "flops":
            flops = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_float, ctypes.c_int64, ctypes.c_int64)(address)
            return lambda: flops(0.25, share, times)
        arrays = [_aligned(size) for _ in range(2 if kind == "copy" else 1)]
        kinds = [ctypes.c_void_p] * len(arrays)
        function = ctypes.CFUNCTYPE(ctypes.c_float, *kinds, ctypes.c_int64, ctypes.c_int64)(address)
        return lambda: function(*[a.ctypes.data for a in arrays], share, times)

    def to_numpy(self, result: object) -> None:
        return None


def _aligned(size: int) -> npt.NDArray[np.uint8]:
    """Touched memory that begins at a cache line."""
    buffer = np.ones(size + 64, np.uint8)
    start = -buffer.ctypes.data % 64
    return buffer[start : start + size]
