"""`grad`, `value_and_grad`, `vjp` and `jvp` as programs write them: meanings against JAX, types, errors."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kina
from kina.core.printer import print_program
from kina.core.verifier import verify
from kina.pipeline import check as check_source
from kina.source import Source

jax.config.update("jax_enable_x64", True)
RNG = np.random.default_rng(7)


def load(text: str, backend: str = "native") -> object:
    return kina.compile(text, backend=backend)


NET = """
type Net [D, H] = { up : F64[D, H], down : F64[H], bias : F64 }

let predict [B, D, H] (net : Net[D, H]) (x : F64[B, D]) : F64[B] =
  reduce[sum, axis=1] (tanh (x @ net.up) * net.down) + net.bias

let loss [B, D, H] (net : Net[D, H]) (x : F64[B, D]) (y : F64[B]) : F64 =
  let e = predict net x - y in
  reduce[mean, axis=0] (e * e)

let slopes [B, D, H] (net : Net[D, H]) (x : F64[B, D]) (y : F64[B]) : (F64, Net[D, H]) = value_and_grad loss net x y
"""


def _net() -> dict[str, np.ndarray]:
    return {"up": RNG.standard_normal((4, 3)), "down": RNG.standard_normal(3), "bias": np.array(0.3)}


def _jax_loss(net, x, y):
    e = jnp.sum(jnp.tanh(x @ net["up"]) * net["down"], 1) + net["bias"] - y
    return jnp.mean(e * e)


@pytest.mark.parametrize("backend", ["native", "reference"])
def test_the_gradient_by_a_record_is_a_record(backend):
    net, x, y = _net(), RNG.standard_normal((8, 4)), RNG.standard_normal(8)
    value, gradient = load(NET, backend).slopes(net, x, y)
    want, wanted = jax.value_and_grad(_jax_loss)(net, x, y)
    np.testing.assert_allclose(value, want, rtol=1e-12)
    for name in net:
        np.testing.assert_allclose(gradient[name], wanted[name], rtol=1e-10)


def test_a_net_is_trained_in_a_loop():
    text = NET + """
let train [B, D, H, N] (net : Net[D, H]) (x : F64[B, D]) (y : F64[B]) (rates : F64[N]) : (Net[D, H], F64[N]) =
  for i < N with n : Net[D, H] = net do
    let (l, g) = value_and_grad loss n x y in
    let r = rates[i] in
    { up = n.up - r * g.up, down = n.down - r * g.down, bias = n.bias - r * g.bias } yield l
"""
    net, x, y, rates = _net(), RNG.standard_normal((8, 4)), RNG.standard_normal(8), np.full(20, 0.1)
    trained, losses = load(text).train(net, x, y, rates)
    for n, rate in enumerate(rates):
        value, slopes = jax.value_and_grad(_jax_loss)(net, x, y)
        np.testing.assert_allclose(losses[n], value, rtol=1e-9)
        net = {name: net[name] - rate * slopes[name] for name in net}
    np.testing.assert_allclose(trained["up"], net["up"], rtol=1e-8)


def test_the_gradient_by_a_list_of_layers_is_a_list_of_layers():
    text = """
type Layer [D] = { w : F64[D, D], b : F64[D] }
let loss [N, D] (layers : List[N, Layer[D]]) (x : F64[D]) : F64 =
  let y = fold (fun h l -> tanh (reshape (reshape h [1, D] @ l.w) [D] + l.b)) x layers in
  reduce[sum, axis=0] (y * y)
let slope [N, D] (layers : List[N, Layer[D]]) (x : F64[D]) : List[N, Layer[D]] = grad loss layers x
"""
    layers = [{"w": RNG.standard_normal((3, 3)), "b": RNG.standard_normal(3)} for _ in range(4)]
    x = RNG.standard_normal(3)

    def loss(layers):
        h = x
        for layer in layers:
            h = jnp.tanh(h @ layer["w"] + layer["b"])
        return jnp.sum(h * h)

    got = load(text).slope(layers, x)
    for n, want in enumerate(jax.grad(loss)(layers)):
        np.testing.assert_allclose(np.asarray(got["w"])[n], want["w"], rtol=1e-9)
        np.testing.assert_allclose(np.asarray(got["b"])[n], want["b"], rtol=1e-9)


PROGRAMS = {
    "second derivative": "let f (x : F64) : F64 = grad (grad (fun (y : F64) -> sin (y * y))) x",
    "third derivative": "let f (x : F64) : F64 = grad (grad (grad (fun (y : F64) -> exp (sin y)))) x",
    "what is captured is constant": "let f (x : F64) : F64 = grad (fun (y : F64) -> x * x * y) x",
    "a literal": "let f (x : F64) : F64 = grad (fun (y : F64) -> y * y) 3.0 + x",
    "a literal for a name": (
        "let g (x : F64) : F64 = x * x\nlet f (x : F64) : F64 = x + grad g 3.0 + (value_and_grad g 2.0).1"
    ),
    "a name": "let g (x : F64) : F64 = x * x * x\nlet f (x : F64) : F64 = grad g x",
    "an operation": "let f (x : F64) : F64 = grad tanh x",
    "the other argument": "let g (x : F64) (y : F64) : F64 = x * sin y\nlet f (x : F64) : F64 = grad g x (x + 1.0)",
    "applied later": "let f (x : F64) : F64 = let g = grad (fun (y : F64) -> y ^ 3.0) in g x + g 2.0",
    "a pipe": "let f (x : F64) : F64 = x |> grad (fun (y : F64) -> log y)",
    "a tuple": (
        "let f (x : F64) : F64 = let (a, b) = grad (fun (p : (F64, F64)) -> p.0 * sin p.1) (x, 2.0 * x) in a * b"
    ),
    "forward": "let f (x : F64) : F64 = let (y, dy) = jvp (fun (y : F64) -> cos y) x 2.0 in y + dy",
    "in reverse": "let f (x : F64) : F64 = let (y, dx) = vjp (fun (y : F64) -> (cos y, y * y)) x (x, 3.0) in y.0 + dx",
    "forward over reverse": (
        "let f (x : F64) : F64 = let (_, d) = jvp (grad (fun (y : F64) -> sin y * y)) x 1.0 in d"
    ),
    "a function that takes one": """
let descend (g : F64 -> F64) (x : F64) : F64 = x - 0.1 * grad g x
let f (x : F64) : F64 = descend (fun y -> y * y * y) (descend (fun y -> cos y) x)
""",
    "generic functions": """
let square [T : Float, ...S] (x : Tensor[T, [...S]]) : Tensor[T, [...S]] = x * x
let f (x : F64) : F64 = grad (fun (y : F64) -> square (square y)) x
""",
    "a branch": "let f (x : F64) : F64 = grad (fun (y : F64) -> if y > 1.0 then y * y else sqrt (y - 5.0)) x",
    "a local function": "let f (x : F64) : F64 = let g (y : F64) : F64 = y * x in grad g x + grad g 1.0",
    "stopped": "let f (x : F64) : F64 = grad (fun (y : F64) -> stop_gradient (y * y) * y) x",
    "through a step of descent": """
let f (x : F64) : F64 =
  let inner = fun (y : F64) -> sin (y * y) in
  grad (fun rate -> inner (x - rate * grad inner x)) 0.1
""",
}  # fmt: skip
X = 1.3
WANTED = {
    "second derivative": lambda x: 2 * np.cos(x * x) - 4 * x * x * np.sin(x * x),
    "third derivative": lambda x: np.exp(np.sin(x)) * (np.cos(x) ** 3 - 3 * np.sin(x) * np.cos(x) - np.cos(x)),
    "what is captured is constant": lambda x: x * x,
    "a literal": lambda x: 6 + x,
    "a literal for a name": lambda x: 10 + x,
    "a name": lambda x: 3 * x * x,
    "an operation": lambda x: 1 - np.tanh(x) ** 2,
    "the other argument": lambda x: np.sin(x + 1),
    "applied later": lambda x: 3 * x * x + 12,
    "a pipe": lambda x: 1 / x,
    "a tuple": lambda x: np.sin(2 * x) * x * np.cos(2 * x),
    "forward": lambda x: np.cos(x) - 2 * np.sin(x),
    "in reverse": lambda x: np.cos(x) - x * np.sin(x) + 6 * x,
    "forward over reverse": lambda x: 2 * np.cos(x) - x * np.sin(x),
    "a function that takes one": lambda x: (lambda y: y - 0.3 * y * y)(x + 0.1 * np.sin(x)),
    "generic functions": lambda x: 4 * x**3,
    "a branch": lambda x: 2 * x,
    "a local function": lambda x: 2 * x,
    "stopped": lambda x: x * x,
    "through a step of descent": lambda x: _descended(x),
}


def _descended(x: float) -> float:
    def inner(y):
        return jnp.sin(y * y)

    return float(jax.grad(lambda rate: inner(x - rate * jax.grad(inner)(x)))(0.1))


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_are_what_calculus_says(name):
    assert load(PROGRAMS[name]).f(X) == pytest.approx(WANTED[name](X), rel=1e-12)


@pytest.mark.parametrize("text", [NET.replace("F64", "F32"), *PROGRAMS.values()])
def test_what_they_become_is_core_that_checks_again(check, text):
    functions = check(text).accepts().checked.elaboration.program.functions
    for function in functions.values():
        verify(function)
    last = list(functions.values())[-1]
    printed = print_program(last)
    again = check_source(Source("core.kina", printed), strict=True)
    assert again.ok, printed
    assert print_program(again.function(last.name)) == printed


def test_parts_that_do_not_move_have_zeros(check):
    text = """
type State = { count : I64, on : Bool, x : F64[2] }
let f (s : State) : State = grad (fun (s : State) -> select s.on (reduce[sum, axis=0] (s.x * s.x)) 0.0) s
"""
    got = load(text).f({"count": np.int64(3), "on": np.bool_(True), "x": np.array([1.0, 2.0])})
    assert got["count"] == 0 and not got["on"]
    np.testing.assert_allclose(got["x"], [2.0, 4.0])


def test_a_loss_may_depend_on_sizes_from_values():
    text = """
let loss [N] (x : F64[N]) : F64 =
  let [K] kept = compress[axis=0] x (x > 0.0) in
  reduce[sum, axis=0] (kept * kept)
let f [N] (x : F64[N]) : F64[N] = grad loss x
"""
    got = load(text, "reference").f(np.array([1.0, -2.0, 3.0]))
    np.testing.assert_allclose(got, [2.0, 0.0, 6.0])


@pytest.mark.parametrize(
    ("body", "code", "says"),
    [
        ("grad (fun (y : F32[N]) -> y * y) x", "K0240", "reduce its result to one number"),
        ("grad (fun (y : F32[N]) -> (y, 1.0)) x", "K0240", "gives one float"),
        ("grad (fun (y : F32[N]) -> iota[I64] 3 == 1) x", "K0240", "gives one float"),
        ("grad (fun (k : I64) -> cast[F32] k) 3", "K0240", "differentiates by floats"),
        ("grad (fun (p : (F32[N], Idx[N])) -> gather[axis=0] p.0 p.1) (x, i)", "K0240", "which has no tangent"),
        ("grad x x", "K0203", "a function is wanted"),
        ("grad[3] (fun (y : F32[N]) -> reduce[sum, axis=0] y) x", "K0206", "nothing in a bracket"),
        ("jvp (fun (y : F32[N]) -> y) x 1.0", "K0302", "the tangent"),
        ("vjp (fun (y : F32[N]) -> (y, y)) x x", "K0302", "the cotangent"),
        ("jvp (fun (y : F32[N]) -> y) x x x", "K0203", "jvp"),
        ("reduce[sum, axis=0] (grad (fun (y : F32[N]) -> reduce[sum, axis=0] (y @ y)) x)", "K0304", "at least 2 axes"),
    ],
)
def test_mistakes_are_explained(check, body, code, says):
    program = check(f"let f [N] (x : F32[N]) (i : Idx[N]) = {body}")
    assert [d.code for d in program.errors] == [code], [(d.code, d.message) for d in program.errors]
    (error,) = program.errors
    assert says in " ".join([error.message, error.label, *error.notes, *(h.message for h in error.help)])


def test_a_form_that_is_not_differentiated_is_named_where_it_stands(check):
    text = """
let f (x : F32) : F32 ! {diverge} =
  let g = fun (y : F32) -> while s < 100.0 with s : F32 = y do s * s + 1.0 in
  grad g x
"""
    check(text).rejects("K0202", "a `while` without a bound", line=2)


def test_refs_inside_are_differentiated_and_refs_outside_may_only_be_read(check):
    inside = """
let f (x : F64) : F64 =
  let rate = ref 3.0 in
  grad (fun (y : F64) -> let r = ref (y * y) in let _ = r := !r * !rate in !r + y) x
"""
    assert load(inside.replace("ref 3.0", "ref (x * 0.0 + 3.0)")).f(2.0) == 13.0
    outside = """
let f (x : F64) : F64 =
  let r = ref x in
  grad (fun (y : F64) -> let _ = r := y in y * y) x + !r
"""
    check(outside).rejects("K0202", "assigns to a ref outside it")


def test_drawn_numbers_are_constants():
    text = """
let f [N] (x : F64[N]) : (F64, F64[N]) ! {rand} =
  value_and_grad (fun (y : F64[N]) -> reduce[sum, axis=0] (y * uniform[F64] [N])) x
"""
    x = np.array([1.0, 2.0, 3.0])
    value, drawn = load(text).f(x, seed=3)
    assert value == pytest.approx(np.sum(x * drawn)) and len(set(drawn.tolist())) == 3
