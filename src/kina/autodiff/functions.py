"""Derivatives of functions of core, as functions of core."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kina.autodiff.backward import Backward
from kina.autodiff.builder import Builder
from kina.autodiff.dependence import reached
from kina.autodiff.forward import Forward
from kina.autodiff.unzip import unzip
from kina.core.copying import Copy, Naming
from kina.core.ir import Function, Parameter, Statement, Value, tree_type
from kina.core.names import Names
from kina.ops.base import has_tangent
from kina.passes.simplify import eliminate_dead_code
from kina.types import Exists


def push(
    builder: Builder, statements: Iterable[Statement], tangents: Mapping[Value, Value], outputs: Sequence[Value]
) -> list[Value | None]:
    """Emits statements and the tangents of `outputs` for those of the inputs; None is zero."""
    forward = Forward(builder, dict(tangents))
    forward.statements(statements)
    return [forward.tangents.get(v) for v in outputs]


@dataclass(frozen=True, slots=True)
class Pullback:
    """From cotangents of outputs to those of inputs: the adjoint of `linear`, which `tangents` go into."""

    builder: Builder
    linear: tuple[Statement, ...]
    inputs: tuple[Value, ...]
    outputs: tuple[Value | None, ...]

    def __call__(self, cotangents: Sequence[Value | None]) -> list[Value | None]:
        """Emits the cotangents of the inputs; None is zero."""
        backward = Backward(self.builder, reached(self.linear, self.inputs))
        for output, cotangent in zip(self.outputs, cotangents, strict=True):
            if output is not None and cotangent is not None:
                backward.add(output, self.builder.term(cotangent))
        backward.statements(self.linear)
        found = [backward.cotangents.get(v) for v in self.inputs]
        return [None if t is None else t.value for t in found]


def pull(
    builder: Builder, statements: Iterable[Statement], inputs: Sequence[Value], outputs: Sequence[Value]
) -> Pullback:
    """Emits statements, with what their adjoint needs, and gives the adjoint: JVP, unzipped, to be transposed."""
    tangents = {v: builder.beside("d", v) for v in inputs}
    with builder.block() as whole:
        found = push(builder, statements, tangents, outputs)
        halves = unzip(whole, tangents.values(), builder)
    builder.statements += halves.first
    return Pullback(builder, halves.linear, tuple(tangents.values()), tuple(found))


# ---------------------------------------------------------------- of whole functions


def jvp(function: Function) -> Function:
    """`f(x, dx)`, which gives the outputs and the tangents of those that are floats; dx are those of float inputs."""
    builder, body = _opened(function)
    inputs = [v for v in function.inputs if has_tangent(v.type)]
    tangents = {v: builder.beside("d", v) for v in inputs}
    changing = _changing(body)
    found = push(builder, body.statements, tangents, changing)
    return _closed(body, builder, tangents.values(), _filled(builder, found, changing))


def vjp(function: Function) -> Function:
    """`f(x, ct)`, which gives the outputs and the cotangents of float inputs; ct are those of float outputs."""
    builder, body = _opened(function)
    inputs = [v for v in function.inputs if has_tangent(v.type)]
    changing = _changing(body)
    pullback = pull(builder, body.statements, inputs, changing)
    cotangents = [builder.value(f"ct{n}", v.type) for n, v in enumerate(changing)]
    return _closed(body, builder, cotangents, _filled(builder, pullback(cotangents), inputs))


def _opened(function: Function) -> tuple[Builder, Function]:
    """A function without calls, and what its derivative is built with."""
    if isinstance(function.result_type, Exists):
        raise TypeError("a function that gives an existential is differentiated where its result is opened")
    names = Naming(Names(v.name for v in function.inputs), Names(function.dimensions))
    copy = Copy(names)
    statements = copy.statements(function.statements)
    return Builder(names), replace(function, statements=statements, result=copy.tree(function.result))


def _changing(function: Function) -> list[Value]:
    return [v for v in function.outputs if has_tangent(v.type)]


def _filled(builder: Builder, values: Sequence[Value | None], like: Sequence[Value]) -> tuple[Value, ...]:
    return tuple(v or builder.zeros(x.type) for v, x in zip(values, like, strict=True))


def _closed(body: Function, builder: Builder, given: Iterable[Value], made: tuple[Value, ...]) -> Function:
    result = (*body.outputs, *made)
    parameters = (*body.parameters, *(Parameter(v.name, v) for v in given))
    return eliminate_dead_code(
        replace(
            body, parameters=parameters, statements=tuple(builder.statements), result=result,
            result_type=tree_type(result),
        )
    )  # fmt: skip
