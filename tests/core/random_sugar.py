"""Random well-typed programs that are full of surface sugar."""

from __future__ import annotations

from hypothesis import strategies as st

HEAD = """let f [B, N, M] requires (B >= 3 && N >= 3 && M >= 3)
    (s : F32) (v : F32[M]) (a : F32[N, M]) (x : F32[B, N, M])"""
NAMES = ("s", "v", "a", "x")
TYPES = ("F32", "F32[M]", "F32[N, M]", "F32[B, N, M]")


@st.composite
def programs(draw: st.DrawFn) -> str:
    """A function whose result has 0 to 3 axes: `F32`, `F32[M]`, `F32[N, M]` or `F32[B, N, M]`."""
    rank = draw(st.integers(0, 3))
    writer = _Writer(draw)
    body = writer.body(rank, draw(st.integers(1, 4)))
    return f"{_HELPERS}{HEAD}\n    : {TYPES[rank]} =\n{body}\n"


_HELPERS = """let scaled [...S] (by : F32) (x : F32[...S]) : F32[...S] = by * x

let both [N, M] (x : F32[N, M]) : (F32[M], F32[N, M]) = (reduce[max, axis=0] x, x |> relu)

"""


class _Writer:
    """Writes expressions of a given rank; `depth` bounds how deep they nest."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.count = 0
        self.known: list[list[str]] = [["s"], ["v"], ["a"], ["x"]]

    def fresh(self) -> str:
        self.count += 1
        return f"y{self.count}"

    def body(self, rank: int, lets: int) -> str:
        lines = []
        for _ in range(lets):
            of = self.draw(st.integers(0, 3))
            name, typed = self.fresh(), f" : {TYPES[of]}" if self.draw(st.booleans()) else ""
            ending = " in" if self.draw(st.booleans()) else ""
            lines.append(f"  let {name}{typed} = {self.expression(of, 2)}{ending}")
            self.known[of].append(name)
        return "\n".join([*lines, f"  {self.expression(rank, 3)}"])

    def expression(self, rank: int, depth: int) -> str:
        if depth == 0:
            if rank == 0 and self.draw(st.booleans()):
                return self.draw(st.sampled_from(["2.0", "(-0.5)", "1e-6", "3.0", "inf", "1.0"]))
            return self.draw(st.sampled_from(self.known[rank]))
        forms = [self.operators, self.piped, self.function, self.branch, self.loop, self.choice]
        forms += {0: [self.scalar], 1: [self.vector], 2: [self.matrix], 3: [self.cube]}[rank] * 3
        return "(" + self.draw(st.sampled_from(forms))(rank, depth - 1) + ")"

    def operators(self, rank: int, depth: int) -> str:
        """One side stretches to the other."""
        small = self.draw(st.integers(0, rank))
        sides = [self.expression(rank, depth), self.expression(small, depth)]
        left, right = self.draw(st.permutations(sides))
        return f"{left} {self.draw(st.sampled_from(['+', '-', '*', '/']))} {right}"

    def piped(self, rank: int, depth: int) -> str:
        tail = self.draw(st.sampled_from(["relu", "max 0.5", "scaled 2.0", "fun y -> y * y", "scaled s |> exp"]))
        return f"{self.expression(rank, depth)} |> {tail}"

    def function(self, rank: int, depth: int) -> str:
        text = self.expression(rank, depth)
        forms = ["-{}", "clamp {} 0.0 1.0", "gelu[tanh] {}", "scaled (s + 1.0) {}", "let g = scaled s in g {}"]
        return self.draw(st.sampled_from(forms)).format(text)

    def branch(self, rank: int, depth: int) -> str:
        test = self.draw(st.sampled_from(["s > 0.0", "N > M", "not (s > 1.0) && s != 2", "N mod 2 = 0 || B = M"]))
        return f"if {test} then {self.expression(rank, depth)} else {self.expression(rank, depth)}"

    def loop(self, rank: int, depth: int) -> str:
        step = self.draw(st.sampled_from(["c * 0.5", "c + cast[F32] i", "c - v[i]", "relu c"]))
        first = self.expression(rank, depth)
        return f"for i < {self.draw(st.sampled_from(['M', '3']))} with c : {TYPES[rank]} = {first} do {step}"

    def choice(self, rank: int, depth: int) -> str:
        x = self.expression(rank, depth)
        other = self.draw(st.sampled_from(["0.0", "(-inf)", "s"]))
        return f"select ({x} > {self.expression(0, depth)}) {x} {other}"

    def scalar(self, rank: int, depth: int) -> str:
        n = self.draw(st.integers(1, 3))
        x = self.expression(n, depth)
        index = self.draw(st.sampled_from({1: ["0", "-1", "M - 1"], 2: ["0, -1", "N - 1, 2"], 3: ["0, 1, -2"]}[n]))
        return self.draw(st.sampled_from([f"{x}[{index}]", f"reduce[sum, axes=all] {x}"]))

    def vector(self, rank: int, depth: int) -> str:
        matrix, vector, cube = (self.expression(n, depth) for n in (2, 1, 3))
        return self.draw(st.sampled_from([
            f"reduce[mean, axis=-2] {matrix}", f"{matrix}[-1]",
            f"[s, 0.5, {vector}[0]] |> reduce[max, axis=0] |> max v",
            f"{cube}[0, 1, :]", f"{cube}[0][..., :][1]",
            f"einsum[n m, m -> m] {matrix} {vector}", f"softmax[axis=-1] {vector}", f"{vector}[::-1]",
            f"(both {matrix}).0",
            f"concat[axis=-1] {vector}[:1] {vector}[1:]", f"let (p, q) = both {matrix} in p * q[0]",
        ]))  # fmt: skip

    def matrix(self, rank: int, depth: int) -> str:
        matrix, vector, cube = (self.expression(n, depth) for n in (2, 1, 3))
        return self.draw(st.sampled_from([
            f"transpose (transpose {matrix} [1, 0]) [..., -1, -2]", f"broadcast[axis=0] {matrix}[:, 0] [N, M]",
            f"einsum[... n m, m -> ... n m] {cube} {vector} |> reduce[max, axis=0]", f"(both[M=M] {matrix}).1",
            f"{matrix} - reduce_keep[mean, axis=-1] {matrix}",
            f"rearrange[b n m -> n b m] {cube} |> reduce[sum, axis=1]",
            f"for i < N yield {matrix}[i] + {vector}", f"map (fun r -> r * 2.0) {matrix}", f"{cube}[1]",
            f"{cube}[0, ..., :]",
            f"let (p, q) = split[axis=0] {matrix} [1, N - 1] in concat[axis=0] p q",
            f"({matrix} @ transpose a [1, 0]) @ a",
            f"sort[axis=-1] {matrix}", f"(top_k[axis=1] {matrix} M).0",
        ]))  # fmt: skip

    def cube(self, rank: int, depth: int) -> str:
        matrix, vector, cube = (self.expression(n, depth) for n in (2, 1, 3))
        return self.draw(st.sampled_from([
            f"broadcast {matrix} [B, N, M]", f"({cube} @ transpose {matrix} [1, 0]) @ {matrix}",
            f"{cube} * {vector} + {matrix}",
            f"rearrange[b (n m) -> b n m, n=N] (reshape {cube} [B, N * M])",
            f"concat[axis=0] {cube}[:1] {cube}[1:]",
            f"{cube}[:, ::-1, :]", f"softmax[axis=-1] {cube}",
            f"stack[axis=0] {matrix} {matrix} |> fun t -> {cube} + t[0]",
        ]))  # fmt: skip
