"""Random well-typed Kina programs as text, and small mistakes made in them.

`Writer` keeps the type of every value it has named, so that what it writes next fits; whether it really fits is
for the checker to say and for the interpreter to show. Whoever draws gives `choose`, which picks one of several.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from kina.core.ir import Function
from kina.dims.dim import Dim, UndefinedSize, constant, floor_div, variable
from kina.dims.proposition import holds
from kina.types import DType

Choose = Callable[[Sequence[Any]], Any]
Shape = tuple[Dim, ...]

N, M, H = map(variable, "NMH")
ONE = constant(1)
HALF, PER_HEAD = floor_div(N, constant(2)), floor_div(N, H)
REQUIRES = ("N mod H = 0", "M >= 2", "N mod 2 = 0", "M <= N", "2 * H divides N && H > 0", "N mod (2 * H) = 0")
SPLITS = {"N mod H = 0": (H, PER_HEAD), "N mod 2 = 0": (constant(2), HALF)}

HELPERS: Mapping[str, str] = {
    "halves": """
let halves [N] requires (N mod 2 = 0) (x : F32[N]) : (F32[N / 2], F32[N / 2]) = (x[:N / 2], x[N / 2:])
""",
    "pairs": """
let pairs [n, N] (x : F32[2 * n, N]) : F32[n, 2, N] = reshape x [n, 2, N]
""",
    "join": """
let join [H, M] (x : F32[H]) (y : F32[M]) : F32[H + M] = concat[axis=0] x y
""",
    "heads": """
let heads [S, D, H] requires (D mod H = 0) (x : F32[S, D]) : F32[H, S, D / H] =
  let dim W = D / H in
  transpose (reshape x [S, H, W]) [1, 0, 2]
""",
    "tail": """
let tail [M, N] requires (N >= 1) (x : F32[N, M]) (y : F32[M + N]) : F32[N - 1, M] = x[1:] + y[:M]
""",
    "scaled": """
let scaled [N] (p : (F32[N], F32)) = let (x, s) = p in (x * s, reduce[sum, axis=0] x)
""",
    "unit": """
let unit [M] : F32[M] = full 1 [M]
""",
}


@dataclass(frozen=True)
class Named:
    """A value of the program: its name, dtype and shape."""

    name: str
    dtype: str
    shape: Shape

    @property
    def type(self) -> str:
        return f"{self.dtype}{sizes(self.shape)}"


def sizes(shape: Sequence[Dim]) -> str:
    return f"[{', '.join(map(str, shape))}]"


@dataclass
class Writer:
    """One function under construction, with the helpers it calls."""

    choose: Choose
    requires: list[str] = field(default_factory=list)
    parameters: list[Named] = field(default_factory=list)
    values: list[Named] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    helpers: set[str] = field(default_factory=set)

    def write(self, steps: int) -> str:
        self.requires = sorted({self.choose(REQUIRES) for _ in range(self.choose((0, 1, 1, 2)))})
        for _ in range(self.choose((1, 2, 3))):
            self.parameter("F32", tuple(self.size() for _ in range(self.choose((0, 1, 2, 2, 3)))))
        for _ in range(steps):
            self.choose(STEPS)(self)
        return self._text()

    def _text(self) -> str:
        results = [self.values[-1], *(self.any() for _ in range(self.choose((0, 0, 1))))]
        written = ", ".join(v.name for v in results)
        types = ", ".join(v.type for v in results)
        annotated = self.choose((True, False)) and all(v.dtype for v in results)
        head = ["let f [N, M, H]", *(f"    requires ({p})" for p in self.requires)]
        head += [f"    ({p.name} : {p.type})" for p in self.parameters]
        result = f"    : ({types}) =" if len(results) > 1 else f"    : {types} ="
        tail = f"  ({written})" if len(results) > 1 else f"  {written}"
        function = "\n".join([*head, result if annotated else "    =", *self.lines, tail])
        return "".join(HELPERS[h].strip() + "\n\n" for h in sorted(self.helpers)) + function + "\n"

    # ------------------------------------------------------------ drawing

    def size(self) -> Dim:
        return self.choose((N, M, H, N, M, ONE, constant(2), N * 2, N + M, N * M, H * M))

    def parameter(self, dtype: str, shape: Shape) -> Named:
        value = Named(f"x{len(self.parameters)}", dtype, shape)
        self.parameters.append(value)
        self.values.append(value)
        return value

    def any(self, dtype: str | None = None, rank: int = 0) -> Named:
        """Some value, the latest ones more often; a new parameter where none fits."""
        fitting = [v for v in self.values if (dtype is None or v.dtype == dtype) and len(v.shape) >= rank]
        if not fitting:
            return self.parameter(dtype or "F32", tuple(self.size() for _ in range(rank)))
        return self.choose((*fitting, *fitting[-3:], fitting[-1]))

    def axis(self, value: Named) -> int:
        return self.choose(range(len(value.shape)))

    def bind(self, expression: str, dtype: str, shape: Shape) -> Named:
        """A new value, or a new one under a name that is taken."""
        name = f"v{len(self.lines)}"
        written = self.choose(("", "", f" : {dtype}{sizes(shape)}"))
        self.lines.append(f"  let {name}{written} = {expression}{self.choose((' in', ''))}")
        value = Named(name, dtype, shape)
        self.values.append(value)
        return value


# ---------------------------------------------------------------- steps


def _unary(w: Writer) -> None:
    x = w.any("F32")
    w.bind(w.choose(("sin {}", "-{}", "relu {}", "{} * 2", "1 - {}", "{} |> tanh", "gelu[tanh] {}")).format(x.name),
           x.dtype, x.shape)  # fmt: skip


def _binary(w: Writer) -> None:
    """One operand is smaller: a suffix of the other's axes, some of them 1."""
    x = w.any("F32")
    thin = tuple(w.choose((d, d, ONE)) for d in x.shape[w.choose(range(len(x.shape) + 1)) :])
    known = [v for v in w.values if v.dtype == "F32" and v.shape == thin]
    y = w.choose(known) if known else w.parameter("F32", thin)
    a, b = w.choose(((x, y), (y, x)))
    w.bind(w.choose(("{} + {}", "{} * {}", "max {} {}", "{} |> sub {}")).format(a.name, b.name), "F32", x.shape)


def _transpose(w: Writer) -> None:
    x = w.any()
    order = list(range(len(x.shape)))
    for place in range(len(order) - 1):
        other = w.choose(range(place, len(order)))
        order[place], order[other] = order[other], order[place]
    w.bind(f"transpose {x.name} {order}", x.dtype, tuple(x.shape[a] for a in order))


def _merge(w: Writer) -> None:
    x = w.any(rank=2)
    axis = w.choose(range(len(x.shape) - 1))
    merged = (*x.shape[:axis], x.shape[axis] * x.shape[axis + 1], *x.shape[axis + 2 :])
    w.bind(w.choose((f"reshape {x.name} {sizes(merged)}", f"flatten_pair[axis={axis}] {x.name}")), x.dtype, merged)


def _split(w: Writer) -> None:
    """Splits an axis that is a product, or one whose divisibility is required."""
    x = w.any(rank=1)
    for axis, size in enumerate(x.shape):
        factors = _factors(w, size)
        if factors is not None and len(x.shape) < 5:
            target = (*x.shape[:axis], *factors, *x.shape[axis + 1 :])
            ways = (f"reshape {x.name} {sizes(target)}", f"unflatten[axis={axis}] {x.name} {sizes(factors)}")
            w.bind(w.choose(ways), x.dtype, target)
            return


def _factors(w: Writer, size: Dim) -> Shape | None:
    if size is N:
        return w.choose([SPLITS[p] for p in w.requires if p in SPLITS] or (None,))
    if len(size.terms) == 1 and size.terms[0][0] and (len(size.terms[0][0]) > 1 or size.terms[0][1] > 1):
        (atoms, number), *_ = size.terms
        first = variable(str(atoms[0])) if str(atoms[0]) in "NMH" else None
        if first is not None:
            rest = constant(number)
            for atom in atoms[1:]:
                if str(atom) not in "NMH":
                    return None
                rest = rest * variable(str(atom))
            return w.choose(((first, rest), (rest, first)))
    return None


def _concat(w: Writer) -> None:
    x = w.any(rank=1)
    axis = w.axis(x)
    own = x.shape[axis]
    if w.choose((True, False)):
        more = w.size()
        y = w.parameter(x.dtype, (*x.shape[:axis], more, *x.shape[axis + 1 :]))
    else:
        more, y = own, x
    written = axis - w.choose((0, len(x.shape)))
    shape = (*x.shape[:axis], own + more, *x.shape[axis + 1 :])
    w.bind(f"concat[axis={written}] {x.name} {y.name}", x.dtype, shape)


def _slice(w: Writer) -> None:
    """From 0 or 1 to the half, to the size less one, or to the end of what was appended."""
    x = w.any(rank=1)
    axis = w.axis(x)
    size = x.shape[axis]
    half = floor_div(size, constant(2))
    before = ":, " * axis
    stop, written = w.choose(((half, f":{half}"), (size - half, f"{half}:"), (size, "0:"), (half * 1, f"0:{half}")))
    w.bind(f"{x.name}[{before}{written}]", x.dtype, (*x.shape[:axis], stop, *x.shape[axis + 1 :]))


def _index(w: Writer) -> None:
    """From the start or from the end, into an axis that is long enough."""
    x = w.parameter("F32", (M + 2, w.size()))
    written, shape = w.choose((
        ("-1", x.shape[1:]), ("0", x.shape[1:]), ("M", x.shape[1:]), (":-2", (M, x.shape[1])), ("1:-1", x.shape[:0]),
        ("M + 1:", (ONE, x.shape[1])), ("M - 1 + 2:", (ONE, x.shape[1])), ("..., :0", (M + 2, constant(0))),
    ))  # fmt: skip
    w.bind(f"{x.name}[{written}]", "F32", shape or (M, x.shape[1]))


def _reduce(w: Writer) -> None:
    x = w.any("F32", rank=1)
    count = w.choose(range(1, len(x.shape) + 1))
    first = w.choose(range(len(x.shape) - count + 1))
    axes = list(range(first, first + count))
    kind = w.choose(("sum", "max", "mean", "logsumexp", "var"))
    if w.choose((True, False)):
        w.bind(f"reduce_keep[{kind}, axes={axes}] {x.name}", "F32",
               tuple(ONE if a in axes else d for a, d in enumerate(x.shape)))  # fmt: skip
    else:
        w.bind(f"reduce[{kind}, axes={axes}] {x.name}", "F32", tuple(d for a, d in enumerate(x.shape) if a not in axes))


def _softmax(w: Writer) -> None:
    x = w.any("F32", rank=1)
    w.bind(f"softmax[axis={w.axis(x)}] {x.name}", "F32", x.shape)


def _matmul(w: Writer) -> None:
    """Times a weight, its own transpose, or a matrix whose batch axes stretch."""
    x = w.any("F32", rank=2)
    *batch, m, k = x.shape
    way = w.choose(("weight", "transpose", "batch"))
    if way == "transpose":
        order = [*range(len(batch)), len(batch) + 1, len(batch)]
        w.bind(f"{x.name} @ transpose {x.name} {order}", "F32", (*batch, m, m))
        return
    columns = w.size()
    own = tuple(batch) if way == "batch" else ()
    thin = tuple(w.choose((d, ONE)) for d in own)
    y = w.parameter("F32", (*thin, k, columns))
    w.bind(w.choose((f"{x.name} @ {y.name}", f"matmul {x.name} {y.name}")), "F32", (*batch, m, columns))


def _cast(w: Writer) -> None:
    x = w.any()
    dtype = w.choose(("F32", "F64", "I32", "Bool"))
    w.bind(f"cast[{dtype}] {x.name}", dtype, x.shape)


def _select(w: Writer) -> None:
    x = w.any("F32")
    w.bind(f"select ({x.name} > {w.choose(('0', '0.5', '-1'))}) {x.name} {w.choose(('0', '1e-6', x.name))}",
           "F32", x.shape)  # fmt: skip


def _ones(w: Writer) -> None:
    x = w.any()
    ones = [a for a, d in enumerate(x.shape) if d is ONE]
    if ones and w.choose((True, False)):
        axis = w.choose(ones)
        w.bind(f"squeeze[axis={axis}] {x.name}", x.dtype, (*x.shape[:axis], *x.shape[axis + 1 :]))
    elif len(x.shape) < 4:
        axis = w.choose(range(len(x.shape) + 1))
        w.bind(f"expand_dims[axis={axis}] {x.name}", x.dtype, (*x.shape[:axis], ONE, *x.shape[axis:]))


def _repeat(w: Writer) -> None:
    x = w.any(rank=1)
    axis = w.axis(x)
    times = w.choose((constant(2), H, M + 1))
    name = w.choose(("repeat", "repeat_interleave"))
    shape = (*x.shape[:axis], x.shape[axis] * times, *x.shape[axis + 1 :])
    w.bind(f"{name}[axis={axis}] {x.name} ({times})", x.dtype, shape)


def _pad(w: Writer) -> None:
    x = w.any(rank=1)
    axis = w.axis(x)
    shape = (*x.shape[:axis], x.shape[axis] + 1 + M, *x.shape[axis + 1 :])
    w.bind(f"pad[axis={axis}, lo=1, hi=M] {x.name}", x.dtype, shape)


def _dimension(w: Writer) -> None:
    """A name for a size, or an assertion: proved, or checked when the program runs."""
    w.lines.append(
        w.choose((
            "  let dim R = 2 * N + M in", "  let dim N2 = N * N in", "  let dim R = cdiv(N, 3) in",
            "  let assert (N * M <= N * N + M * M) in", "  let assert_eq (N * H) (H * N) in",
            "  let assert (N * N * N != 7 * M * M * M + 3) in",
        ))
    )  # fmt: skip


def _call(w: Writer) -> None:
    """A helper, its dimensions inferred or given."""
    name = w.choose(tuple(HELPERS))
    w.helpers.add(name)
    fresh = f"v{len(w.lines)}"
    match name:
        case "halves":
            x = w.parameter("F32", (N * 2,))
            w.lines.append(f"  let ({fresh}, {fresh}') = halves{w.choose(('', '[2 * N]'))} {x.name} in")
            w.values += [Named(fresh, "F32", (N,)), Named(f"{fresh}'", "F32", (N,))]
        case "pairs":
            rows = w.choose((N, M + H, ONE, N * M))
            x = w.parameter("F32", (rows * 2, M))
            w.bind(f"pairs{w.choose(('', f'[{rows}]', f'[{rows}, M]'))} {x.name}", "F32", (rows, constant(2), M))
        case "join":
            x, y = w.any("F32", rank=1), w.any("F32", rank=1)
            if len(x.shape) == len(y.shape) == 1:
                w.bind(f"join {x.name} {y.name}", "F32", (x.shape[0] + y.shape[0],))
        case "heads":
            x = w.parameter("F32", (M, N * 3))
            w.bind(f"heads[M, 3 * N, 3] {x.name}", "F32", (constant(3), M, N))
        case "tail":
            x, y = w.parameter("F32", (N + 1, M)), w.parameter("F32", (M + N + 1,))
            w.bind(f"tail {x.name} {y.name}", "F32", (N, M))
        case "scaled":
            x = w.any("F32", rank=1)
            if len(x.shape) == 1:
                w.lines.append(f"  let ({fresh}, {fresh}') = scaled ({x.name}, 0.5) in")
                w.values += [Named(fresh, "F32", x.shape), Named(f"{fresh}'", "F32", ())]
        case "unit":
            size = w.size()
            w.bind(f"unit[{size}]", "F32", (size,))


STEPS = (
    _unary, _binary, _binary, _binary, _transpose, _merge, _merge, _split, _split, _split, _concat, _slice, _index,
    _reduce, _reduce, _softmax, _matmul, _matmul, _cast, _select, _ones, _repeat, _pad, _dimension, _call, _call, _call,
)  # fmt: skip


# ---------------------------------------------------------------- mistakes

TOKEN = re.compile(r"[A-Za-z_][\w']*|\d+\.\d+|\d+|\|>|[!=<>]=|&&|\s+|.", re.DOTALL)


def tokens(text: str) -> list[str]:
    return TOKEN.findall(text)


def make_mistake(text: str, choose: Choose) -> str:
    """The program with one thing wrong in it, or one thing changed that makes no difference."""
    return choose(MISTAKES)(text, choose)


def _change_one(text: str, pattern: str, change: Callable[[re.Match[str]], str], choose: Choose) -> str:
    found = list(re.finditer(pattern, text))
    if not found:
        return text
    match = choose(found)
    return text[: match.start()] + change(match) + text[match.end() :]


def _swap_sizes(text: str, choose: Choose) -> str:
    return _change_one(text, r"\[([^\[\],=]+), ([^\[\],=]+)", lambda m: f"[{m[2]}, {m[1]}", choose)


def _other_size(text: str, choose: Choose) -> str:
    return _change_one(text, r"(?<=[\[ (])[NMH](?=[\],)])", lambda m: choose(("N", "M", "H", "(N + 1)", "2")), choose)


def _off_by_one(text: str, choose: Choose) -> str:
    return _change_one(text, r"(?<=[\[ (])[NMH](?=[\],)])", lambda m: f"{m[0]} {choose('+-')} 1", choose)


def _drop_transpose(text: str, choose: Choose) -> str:
    return _change_one(text, r"transpose (\w+) \[[\d, ]*\]", lambda m: m[1], choose)


def _other_number(text: str, choose: Choose) -> str:
    return _change_one(text, r"(?<![\w.])\d(?![\w.])", lambda m: choose(("0", "1", "2", "3", "-1")), choose)


def _drop_requires(text: str, choose: Choose) -> str:
    return _change_one(text, r"\s+requires \([^\n]*\)(?=\s)", lambda m: "", choose)


def _other_dtype(text: str, choose: Choose) -> str:
    return _change_one(text, r"\b(F32|F64|I32|Bool)\b", lambda m: choose(("F32", "F64", "I32", "Bool")), choose)


def _other_value(text: str, choose: Choose) -> str:
    names = re.findall(r"\b[xv]\d+\b", text)
    return _change_one(text, r"(?<!let )(?<!let \()\b[xv]\d+\b(?! :)(?! =)", lambda m: choose(names), choose)


def _drop_keep(text: str, choose: Choose) -> str:
    return _change_one(text, r"reduce(_keep)?", lambda m: "reduce" if m[1] else "reduce_keep", choose)


MISTAKES = (
    _swap_sizes, _other_size, _off_by_one, _drop_transpose, _other_number, _drop_requires, _other_dtype, _other_value,
    _drop_keep,
)  # fmt: skip


def garble(text: str, choose: Choose, times: int) -> str:
    """The program with tokens replaced, dropped, doubled and swapped."""
    pieces = tokens(text)
    words = [p for p in pieces if not p.isspace()]
    for _ in range(times):
        place, other = choose(range(len(pieces))), choose(range(len(pieces)))
        match choose(("replace", "replace", "drop", "double", "swap")):
            case "replace":
                pieces[place] = choose(words)
            case "drop":
                pieces[place] = ""
            case "double":
                pieces[place] = f"{pieces[place]} {pieces[place]}"
            case _:
                pieces[place], pieces[other] = pieces[other], pieces[place]
    return "".join(pieces)


# ---------------------------------------------------------------- running

MOST_ELEMENTS = 20_000


def admissible(function: Function, most: int) -> Iterator[dict[str, int]]:
    """Small sizes that satisfy what the function requires, 0 among them, at which its inputs stay small."""
    found = 0
    numbers = (0, 1, 2, 3, 4, 6)
    grid = list(product(numbers, repeat=len(function.dimensions)))
    for values in sorted(grid, key=lambda v: (sum(v) * 7 + v[0] * 5 + v[-1] * 3) % 11):
        at = dict(zip(function.dimensions, values, strict=True))
        if all(_true(p, at) for p in function.requires) and _small(function, at):
            yield at
            found += 1
            if found == most:
                return


def _true(p: Any, at: Mapping[str, int]) -> bool:
    try:
        return holds(p, at)
    except UndefinedSize:
        return False


def _small(function: Function, at: Mapping[str, int]) -> bool:
    volumes = (np.prod([d.evaluate(at) for d in v.type.shape], dtype=int) for v in function.inputs)
    return all(v <= MOST_ELEMENTS for v in volumes)


def arrays(function: Function, at: Mapping[str, int], rng: np.random.Generator) -> list[np.ndarray]:
    found = []
    for value in function.inputs:
        shape = tuple(d.evaluate(at) for d in value.type.shape)
        dtype = value.type.dtype
        drawn = rng.random(shape) < 0.5 if dtype is DType.BOOL else rng.uniform(-2, 2, shape)
        found.append(np.asarray(drawn).astype(dtype.numpy))
    return found
