"""The bench's table: a row a workload, a column a peer; how far Kina is from the best peer and from the limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rich.console import Console
from rich.markup import escape
from rich.table import Table

KINA, LIMIT = "Kina", "limit"


class Measured(Protocol):
    """What the report needs of a result."""

    peer: str
    workload: str
    missing: str

    @property
    def seconds(self) -> float | None: ...


def show(console: Console, title: str, names: Sequence[str], results: Sequence[Measured]) -> None:
    """Prints the table, and under it why something is missing."""
    table = Table(title=title, title_justify="left")
    table.add_column("workload", no_wrap=True)
    for heading in (*names, "best peer / Kina", "limit reached"):
        table.add_column(heading, justify="right")
    for workload in dict.fromkeys(r.workload for r in results):
        row = {r.peer: r.seconds for r in results if r.workload == workload}
        best = min((t for name, t in row.items() if t and name not in (KINA, LIMIT)), default=None)
        cells = [_time(row[name], best if name != LIMIT else None) for name in names]
        table.add_row(workload, *cells, _ratio(best, row.get(KINA)), _percent(row.get(LIMIT), row.get(KINA)))
    console.print(table)
    for peer, reason in dict.fromkeys((r.peer, r.missing) for r in results if r.missing and r.peer != LIMIT):
        console.print(f"[dim]{peer} is missing: {escape(reason)}[/]", highlight=False)
    console.print()


def _time(seconds: float | None, best: float | None) -> str:
    if seconds is None:
        return "-"
    text = f"{seconds * 1e3:.2f} ms" if seconds >= 1e-4 else f"{seconds * 1e6:.2f} us"
    return f"[bold]{text}[/]" if seconds == best else text


def _ratio(peer: float | None, kina: float | None) -> str:
    if not peer or not kina:
        return "-"
    ratio = peer / kina
    return f"[{'green' if ratio >= 1 else 'red'}]{ratio:.2f}x[/]"


def _percent(limit: float | None, kina: float | None) -> str:
    return f"{limit / kina:.0%}" if limit and kina else "-"
