"""How the obligations of `catalogue.py` are settled, and how long it takes.

Run it with `PYTHONPATH=src python tests/dims/timing.py`. Each is settled from fresh facts; its time is the least of
several.
"""

from __future__ import annotations

import time
from collections import Counter
from statistics import median

from catalogue import PROVED, REFUTED
from notation import dim_of, prop

from kina.dims.prover import Facts, settle


def milliseconds(requires: str, claim: str) -> float:
    goal, hypotheses = prop(claim), (prop(requires),) if requires else ()
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        settle(goal, Facts(hypotheses))
        best = min(best, time.perf_counter() - start)
    return best * 1e3


def main() -> None:
    for title, rows in (("proved", PROVED), ("refuted", REFUTED)):
        ways = Counter(str(settle(prop(c), Facts((prop(r),) if r else ())).status) for _, r, c in rows)
        times = sorted((milliseconds(r, c), name) for name, r, c in rows)
        print(f"{title}: {len(rows)}, {dict(ways)}, median {median(t for t, _ in times):.2f} ms")
        print("  slowest:", ", ".join(f"{name} {t:.1f} ms" for t, name in times[-3:]))
    left, right = dim_of("B * H * S * D"), dim_of("(B * H) * (D * S)")
    goal, facts = prop("B * H * S * D == (B * H) * (D * S)"), Facts()
    start = time.perf_counter()
    for _ in range(10_000):
        settle(goal, facts)
    print(f"normal form: {(time.perf_counter() - start) * 100:.2f} us, the same object: {left is right}")


if __name__ == "__main__":
    main()
