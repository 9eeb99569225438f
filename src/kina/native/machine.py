"""The machine that code is made for: instruction set, vector width, caches, cores.

A `Machine` is plain data. Everything that shapes generated code (register tiles, cache blocks,
prefetch distances) is a function of it, so that code for another CPU can be made, and tested, here.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

KIB = 1024
MIB = 1024 * KIB

_SYSFS_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


@dataclass(frozen=True, slots=True)
class Machine:
    """A target of code generation. Sizes are in bytes.

    `features` is LLVM's feature string (`+avx2,-avx512f,...`). `vector_bytes` is the width of the
    vectors worth using: 64 with AVX-512, 32 with AVX2 and FMA, 16 otherwise (SSE2, NEON).
    """

    triple: str
    cpu: str
    features: str
    vector_bytes: int
    vector_registers: int
    cores: int
    l1d: int = 32 * KIB
    l2: int = 512 * KIB
    l3: int = 8 * MIB

    @staticmethod
    def host() -> Machine:
        """The machine this process runs on, with the cores this process may use now."""
        return replace(_host(), cores=usable_cores())

    @staticmethod
    def avx512() -> Machine:
        """A typical x86-64 server with AVX-512, whatever the host is."""
        return Machine("x86_64-unknown-linux-gnu", "skylake-avx512", "-prefer-256-bit", 64, 32, 4, l2=1 * MIB)

    @staticmethod
    def avx2() -> Machine:
        """A typical x86-64 desktop with AVX2 and FMA, whatever the host is."""
        return Machine("x86_64-unknown-linux-gnu", "haswell", "", 32, 16, 4)

    @staticmethod
    def sse2() -> Machine:
        """Any x86-64 at all: the baseline, without FMA."""
        return Machine("x86_64-unknown-linux-gnu", "x86-64", "", 16, 16, 1)

    @staticmethod
    def neon() -> Machine:
        """A typical 64-bit Arm server with NEON, whatever the host is."""
        return Machine("aarch64-unknown-linux-gnu", "neoverse-n1", "", 16, 32, 4, l1d=64 * KIB, l2=1 * MIB)

    def lanes(self, element_bytes: int) -> int:
        """How many elements of `element_bytes` each fit in one vector."""
        return self.vector_bytes // element_bytes

    @property
    def architecture(self) -> str:
        """The triple's first part: `x86_64`, `aarch64`, ..."""
        return self.triple.partition("-")[0]

    def has(self, feature: str) -> bool:
        """Whether the feature string turns `feature` on; cross targets do not list what their CPU's name implies."""
        return f"+{feature}" in self.features.split(",")


def usable_cores() -> int:
    """How many CPUs this process may be scheduled on (affinity and cgroup masks counted, quotas not)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def _host() -> Machine:
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    wide = bool(features.get("avx512f"))
    medium = bool(features.get("avx2") and features.get("fma"))
    arm = platform.machine().lower() in ("aarch64", "arm64")
    # Some AVX-512 CPUs are tuned in LLVM to prefer 256 bits when it chooses; we choose 512 everywhere.
    flags = str(features.flatten()) + (",-prefer-256-bit" if wide else "")
    caches = _sysfs_caches()
    return Machine(
        triple=llvm.get_process_triple(),
        cpu=llvm.get_host_cpu_name(),
        features=flags,
        vector_bytes=64 if wide else 32 if medium else 16,
        vector_registers=32 if wide or arm else 16,
        cores=usable_cores(),
        **caches,
    )


def _sysfs_caches() -> dict[str, int]:
    """Data cache sizes by field name of `Machine`, from Linux's sysfs; levels it does not tell are left out."""
    names = {"1": "l1d", "2": "l2", "3": "l3"}
    sizes: dict[str, int] = {}
    for entry in sorted(_SYSFS_CACHES.glob("index[0-9]*")):
        try:
            level, kind, size = ((entry / f).read_text().strip() for f in ("level", "type", "size"))
        except OSError:
            continue
        bytes_ = _parse_size(size)
        if kind in ("Data", "Unified") and level in names and bytes_:
            sizes[names[level]] = bytes_
    return sizes


def _parse_size(text: str) -> int:
    """Bytes in sysfs' notation (`48K`, `2M`), 0 if it is none."""
    unit = {"K": KIB, "M": MIB, "G": 1024 * MIB}.get(text[-1:], 1)
    digits = text[:-1] if unit > 1 else text
    return int(digits) * unit if digits.isdigit() else 0
