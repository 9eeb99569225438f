"""Modules and functions of Kina as Python objects."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any, Literal

from kina import pipeline
from kina.core import ir
from kina.diagnostics.names import nearest
from kina.elaborate.generics import Choice, stand_ins
from kina.elaborate.record_forms import record_forms
from kina.elaborate.result import Generic, Signature
from kina.host.boundary import Boundary, Executable, Run
from kina.host.generic import choice_of, not_for, without_dtypes
from kina.host.record_type import RecordType
from kina.host.reference import Reference
from kina.source import Source

Compile = Callable[[ir.Function], Executable]
Stage = Literal["core", "decomposed", "kernels", "llvm"]


class Function:
    """A function of a Kina module: call it with arrays.

    Arguments are NumPy, PyTorch and JAX arrays, anything else with DLPack or the buffer protocol, numbers, and lists
    of numbers; tuples for tuple parameters. Arrays are never converted to another dtype, and not copied
    whatever their strides. Sizes are read off the shapes; one that they leave open is given by name: `f(x, H=2)`.

    The result is an array, or a tuple of them, and a scalar is an array without axes. It is of the kind of the first
    argument that is an array with axes (else of the first array, else NumPy's), fresh and row-major.

    A function that draws random numbers (`! {rand}`) is given a seed, an integer: `f(x, seed=0)`.

    A function is compiled at the first call, once for all sizes, and may be called from several threads. A call that
    does not fit raises KinaError.
    """

    def __init__(self, core: ir.Function, signature: Signature, compile: Compile = pipeline.compile_function) -> None:
        self.compilations = 0
        """How often it was compiled: 0 before the first call, 1 ever after."""
        self.__name__ = self.__qualname__ = core.name
        self.__doc__ = core.documentation or None
        self._core = core
        self._signature = signature
        self._compile = compile
        self._boundary = Boundary(core, draws=self.draws)
        self._executable: Executable | None = None
        self._run: Run = self._first_run
        self._lock = Lock()

    @property
    def signature(self) -> str:
        """The type, as the author wrote it."""
        return str(self._signature)

    @property
    def draws(self) -> bool:
        """Whether it draws random numbers: then it is called with a seed, `f(x, seed=0)`."""
        return "rand" in self._signature.effects

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        """The result for these arguments; `name=` gives a parameter, or a size that the shapes leave open."""
        return self._boundary.call(self._run, args, named)

    def reference(self, /, *args: Any, **named: Any) -> Any:
        """The same by the reference interpreter: what the function means, slowly."""
        return self._boundary.call(Reference(self._core).run, args, named)

    def explain(self, what: Stage = "kernels") -> str:
        """What the compiler made of it: typed `core` (as Kina), core `decomposed` into operations that are not made of
        others, fused `kernels`, or `llvm` assembly."""
        match what:
            case "core":
                return pipeline.core_text(self._core)
            case "decomposed":
                return pipeline.decomposed_text(self._core)
            case "kernels":
                return str(pipeline.lower(self._core))
            case "llvm":
                return str(pipeline.compile_function(self._core).llvm_ir)
        raise ValueError(f"explain shows core, decomposed, kernels or llvm, not {what!r}")

    def _first_run(self, *call: Any) -> Any:
        return self._compiled().run(*call)

    def _compiled(self) -> Executable:
        with self._lock:
            if self._executable is None:
                self._executable = self._compile(self._core)
                self.compilations += 1
                self._run = self._executable.run
            return self._executable

    @property
    def __signature__(self) -> inspect.Signature:
        """For `inspect` and editors: the parameters, then the sizes that may be given by name."""
        parameters = [p.name for p in self._core.parameters]
        sizes = [d for d in self._core.dimensions if d not in parameters]
        ways = [(parameters, inspect.Parameter.POSITIONAL_OR_KEYWORD), (sizes, inspect.Parameter.KEYWORD_ONLY)]
        return inspect.Signature([_parameter(name, way) for names, way in ways for name in names])

    def __repr__(self) -> str:
        return f"<kina function {self.signature}>"


def _parameter(name: str, way: Any) -> inspect.Parameter:
    optional = None if way is inspect.Parameter.KEYWORD_ONLY else inspect.Parameter.empty
    # Kina allows `x'`, which inspect does not; such a name can only be shown.
    return inspect.Parameter(name.replace("'", "_prime"), way, default=optional)


class GenericFunction:
    """A function with `...S` or `T : Float` among its binders: call it with arrays of any ranks and dtypes that fit.

    For each choice of ranks and dtypes it is checked and compiled once, at the first call that needs it.
    """

    def __init__(self, generic: Generic, signature: Signature, compile: Compile = pipeline.compile_function) -> None:
        self.__name__ = self.__qualname__ = generic.declaration.name
        self.__doc__ = generic.declaration.documentation or None
        self._generic = generic
        self._signature = signature
        self._compile = compile
        self._instances: dict[Choice, Function] = {}
        self._lock = Lock()

    @property
    def signature(self) -> str:
        """The type, as the author wrote it."""
        return str(self._signature)

    @property
    def compilations(self) -> int:
        """How often it was compiled: once for each choice of ranks and dtypes so far."""
        return sum(f.compilations for f in self._instances.values())

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        """The result for these arguments; `name=` gives a parameter, or a size or dtype that they leave open."""
        return self.instance(*args, **named)(*args, **without_dtypes(self._generic, named))

    def reference(self, /, *args: Any, **named: Any) -> Any:
        """The same by the reference interpreter: what the function means, slowly."""
        return self.instance(*args, **named).reference(*args, **without_dtypes(self._generic, named))

    def explain(self, what: Stage = "kernels") -> str:
        """What the compiler made of it for F32, I64 or Bool, as its dtypes admit, and segments of two axes."""
        core = self._generic.instance(stand_ins(self._generic.declaration)[0])
        assert isinstance(core, ir.Function), "a generic function without errors is right for its stand-ins"
        return Function(core, self._signature, self._compile).explain(what)

    def instance(self, /, *args: Any, **named: Any) -> Function:
        """The function for the ranks and dtypes of these arguments. Raises KinaError where they leave them open."""
        choice = choice_of(self._generic, args, named)
        with self._lock:
            if choice not in self._instances:
                core = self._generic.instance(choice)
                if not isinstance(core, ir.Function):
                    raise not_for(self._generic, choice, core)
                self._instances[choice] = Function(core, self._signature, self._compile)
            return self._instances[choice]

    def __repr__(self) -> str:
        return f"<kina function {self.signature}>"


class Module:
    """The functions of a Kina file, as attributes: `module.rmsnorm(x, weight, 1e-6)`; and its record types:
    `module.Model.load("model.gguf")`. Where both have a name, it means the function.
    """

    def __init__(
        self, source: Source, functions: Iterable[Function | GenericFunction], types: Iterable[RecordType] = ()
    ) -> None:
        self.__file__ = source.name
        self._functions = {f.__name__: f for f in functions}
        self._types = {t.__name__: t for t in types}

    def __getattr__(self, name: str) -> Any:
        # Through the dictionary: while a module is copied, it has no attributes yet.
        functions: dict[str, Function | GenericFunction] = self.__dict__.get("_functions", {})
        types: dict[str, RecordType] = self.__dict__.get("_types", {})
        if name in functions:
            return functions[name]
        if name in types:
            return types[name]
        close = nearest(name, [*functions, *types])
        meant = f"; did you mean {close}?" if close else ""
        where = self.__dict__.get("__file__", "the module")
        raise AttributeError(f"{where} has no function {name}{meant}", name=name, obj=self)

    def __dir__(self) -> list[str]:
        return sorted(self._functions)

    def __repr__(self) -> str:
        return f"<kina module {self.__file__}: {', '.join(self._functions) or 'no functions'}>"


def make_module(checked: pipeline.Checked, compile: Compile = pipeline.compile_function) -> Module:
    """A checked module without errors as a Python object."""
    signatures = checked.elaboration.signatures
    functions = checked.elaboration.program.functions
    generic = checked.elaboration.generic
    plain = [Function(core, signatures[name], compile) for name, core in functions.items()]
    open_ = [GenericFunction(g, signatures[name], compile) for name, g in generic.items()]
    types = map(RecordType, record_forms(checked.elaboration.state.context).values())
    return Module(checked.source, [*plain, *open_], types)
