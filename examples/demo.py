"""What Kina does, on the real weights of a language model: check, compile once, run at every length, refuse.

    make demo

Fails (exit 1) where the native result differs from float64 by more than 1e-4, or where more than one
compilation was needed.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.markup import escape
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text
from threadpoolctl import threadpool_limits

import kina
from kina.diagnostics.render import render
from kina.elaborate.result import Signature
from kina.host.gguf_file import GGUFFile, open_gguf
from kina.host.tokenizer import tokenizer_of
from kina.models.chat import render_chat, texts
from kina.models.llama import Llama, Session
from kina.models.smollm2 import fetch_model
from kina.pipeline import Checked, check
from kina.source import Source

F32 = npt.NDArray[np.float32]
Array = npt.NDArray[np.floating]

HERE = Path(__file__).parent
BLOCK = 0
LENGTHS = (1, 24, 128)
LARGEST_ERROR = 1e-4
ROUNDS = 3
QUESTION = "What is the capital of France?"
ANSWER = "Paris"
MOST_TOKENS = 48
TEXT = """\
A shape error in a tensor program is rarely loud. Two axes change places, a batch of one hides a
missing dimension, a broadcast stretches what should have been an error, and the program runs on and
gives numbers that look like numbers. The loss goes down, only not as far as it should, and a week later
somebody finds a reshape where there ought to have been a transpose. A type that knows the names of
the dimensions finds it before the program runs: not for one batch and one length, but for all
of them, since the sizes are symbols and what holds for symbols holds for every number. And because the
types are known for every size, the compiler needs to be asked only once."""


@dataclass(frozen=True)
class Block:
    """The feed-forward half of one block: `x [B, S, D]`, weights as `[in, out]`."""

    norm: F32
    gate: F32
    up: F32
    down: F32
    eps: float

    @staticmethod
    def of(file: GGUFFile, number: int) -> Block:
        name = f"blk.{number}.ffn_"
        # Every step runs along the rows of the weights: they are laid out so once, for Kina and NumPy alike.
        gate, up, down = (np.ascontiguousarray(file.linear(f"{name}{w}.weight")) for w in ("gate", "up", "down"))
        return Block(file.dequantise(name + "norm.weight"), gate, up, down, file.rms_epsilon)

    def numpy(self, x: Array) -> Array:
        """The same in NumPy, in the precision of `x`; the weights are converted where they have another."""
        norm, gate_w, up_w, down_w = (w.astype(x.dtype, copy=False) for w in (self.norm, self.gate, self.up, self.down))
        eps = x.dtype.type(self.eps)
        normed = x / np.sqrt(np.mean(x * x, axis=2, keepdims=True) + eps) * norm
        gate = normed @ gate_w
        result: Array = x + (gate / (1 + np.exp(-gate)) * (normed @ up_w)) @ down_w
        return result


@dataclass(frozen=True)
class Measured:
    """One length: errors against float64, seconds of the best run."""

    tokens: int
    absolute: float
    relative: float
    kina: float
    numpy: float

    @property
    def right(self) -> bool:
        return self.relative <= LARGEST_ERROR  # False for NaN too


def main() -> int:
    console = Console(highlight=False, soft_wrap=True)
    try:
        return demonstrate(console)
    except kina.KinaError as error:
        console.print(f"[bold red]error[/]: {escape(str(error))}")
        return 1


def demonstrate(console: Console) -> int:
    path = HERE / "transformer_block.kina"
    console.rule("[bold]1. Checked for every size, before anything runs")
    checked = check(Source(path.name, path.read_text(encoding="utf-8")))
    show_checked(console, checked)

    console.rule("[bold]2. Compiled once, run on the weights of SmolLM2-135M")
    with console.status("fetching the model, once (93 MB) ..."):
        file = open_gguf(fetch_model())
    ids = tokenizer_of(file).encode(TEXT).ids
    block = Block.of(file, BLOCK)
    show_model(console, file, block, ids)
    module = kina.load(path)
    fragment = module.transformer_block_partial

    def run(x: F32) -> F32:
        result: F32 = fragment(x, block.norm, block.gate, block.up, block.down, block.eps)
        return result

    rows = [measure(run, block, file.rows("token_embd.weight", [ids[:length]])) for length in LENGTHS]
    compilations = fragment.compilations
    show_measured(console, rows, compilations)

    console.rule("[bold]3. Refused, with the reason")
    refused = show_refused(console)

    console.rule("[bold]4. The whole of SmolLM2, in Kina")
    said = show_answer(console)
    return verdict(console, rows, compilations, checked.ok, refused, said)


def show_checked(console: Console, checked: Checked) -> None:
    for signature in checked.elaboration.signatures.values():
        console.print(Syntax(layout(signature), "ocaml", theme="ansi_dark", background_color="default"))
    obligations = checked.elaboration.obligations
    ways = Counter(o.status_text for o in obligations).most_common()
    console.print(f"\n{len(obligations)} obligations on sizes; how they were settled:", end=" ")
    console.print(", ".join(f"{count} {how}" for how, count in ways) + "\n")


def layout(signature: Signature) -> str:
    """A function's type with a line for each parameter."""
    parameters = [f"    ({name} : {type_})" for name, type_ in signature.parameters]
    requires = "".join(f" requires ({p})" for p in signature.requires)
    head = f"{signature.name} [{', '.join(signature.dimensions)}]{requires}"
    return "\n".join([head, *parameters, f"    : {signature.result}"])


def show_model(console: Console, file: GGUFFile, block: Block, ids: list[int]) -> None:
    gate = file.info(f"blk.{BLOCK}.ffn_gate.weight")
    width, hidden = block.gate.shape
    console.print(
        f"{file.metadata.get('general.name', file.architecture)}: block {BLOCK} of {file.block_count}, "
        f"D = {width}, H = {hidden}, weights {gate.quantisation} dequantised to F32, eps = {block.eps:.0e}"
    )
    console.print(f"text of {len(ids)} tokens, {ids[:6]} ..., looked up in the embedding table\n")


def measure(run: Callable[[F32], F32], block: Block, x: F32) -> Measured:
    exact = block.numpy(x.astype(np.float64))
    error = np.abs(run(x) - exact).max()
    kina_times, numpy_times = [], []
    for _ in range(ROUNDS):  # in turns, so that a disturbance of the machine meets both
        kina_times.append(best_of(lambda: run(x)))
        numpy_times.append(best_of(lambda: block.numpy(x)))
        # On few cores NumPy's threads can be in each other's way; then one alone is faster.
        with threadpool_limits(1):
            numpy_times.append(best_of(lambda: block.numpy(x)))
    relative = float(error / np.abs(exact).max())
    return Measured(x.shape[1], float(error), relative, min(kina_times), min(numpy_times))


def best_of(call: Callable[[], object], seconds: float = 0.1) -> float:
    """Seconds of the shortest run among many; at least three."""
    times: list[float] = []
    while len(times) < 3 or sum(times) < seconds:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def show_measured(console: Console, rows: list[Measured], compilations: int) -> None:
    table = Table()
    for heading in ("tokens", "error", "relative", "Kina", "NumPy", "ratio", "compilations"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            str(row.tokens),
            f"{row.absolute:.1e}",
            f"{row.relative:.1e}",
            f"{row.kina * 1e3:.3f} ms",
            f"{row.numpy * 1e3:.3f} ms",
            f"{row.numpy / row.kina:.2f}",
            str(compilations),
        )
    console.print(table)
    console.print("errors: against NumPy in float64; times: best of many, NumPy in float32 on one thread or all\n")


def show_refused(console: Console) -> bool:
    """Shows what a broken program gets; whether it was refused."""
    try:
        kina.load(os.path.relpath(HERE / "merge_heads_by_mistake.kina"))
    except kina.KinaError as error:
        color = console.color_system is not None
        console.print(Text.from_ansi(render(error.diagnostics, color=color, width=console.width)))
        return True
    return False


def show_answer(console: Console) -> str:
    """Asks the model, prints what it says as it comes, and gives that."""
    llama = Llama.open(fetch_model())
    ids = llama.encode(render_chat(llama.file, [{"role": "user", "content": QUESTION}]))
    console.print(f"[bold]{QUESTION}[/]")
    said: list[str] = []
    started = time.perf_counter()
    for text in texts(llama.tokenizer, Session(llama).generate(ids, MOST_TOKENS)):
        said.append(text)
        console.print(Text(text), end="")
    seconds = time.perf_counter() - started
    compilations = llama.module.step.compilations
    console.print(f"\n\n{len(ids)} tokens read, {len(said)} written in {seconds:.1f} s, {compilations} compilation")
    console.print("talk with it: [bold]kina chat[/]\n")
    return "".join(said)


def verdict(
    console: Console, rows: list[Measured], compilations: int, checked: bool, refused: bool, said: str
) -> int:
    failures = [f"{row.tokens} tokens: relative error {row.relative:.1e}" for row in rows if not row.right]
    if compilations != 1:
        failures.append(f"{compilations} compilations instead of 1")
    if not checked:
        failures.append("the fragment does not check")
    if not refused:
        failures.append("the broken program was not refused")
    if ANSWER not in said:
        failures.append(f"the model did not say {ANSWER}")
    for failure in failures:
        console.print(f"[bold red]failed[/]: {failure}")
    if not failures:
        console.print(f"[bold green]ok[/]: {len(rows)} lengths, one compilation, errors below {LARGEST_ERROR:.0e}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
