"""Loops and branches as control flow around the functions of kernels.

Each list of steps and each loop is a function `(ptr args, i64 tid, i64 n) -> i64` that all threads run, each with an
argument block of its own: there a loop writes the number of its step, where sizes are read, and the addresses of its
states. They return 0, or the number of the check that failed, which all threads find alike. What threads share is
written before a barrier and read after it.

Sizes are read where a function begins, so that what follows the reading of a dimension is a function of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from kina.core.ir import Check, Open, Require, Value
from kina.dims.atoms import Atom, Maximum, Minimum, Modulo, Variable, parts
from kina.dims.dim import Dim, variable
from kina.dims.proposition import And, Comparison, Or, Proposition
from kina.kernels.ir import (
    BandKernel,
    Choice,
    GemmKernel,
    Kernel,
    KernelProgram,
    LoopKernel,
    OrderKernel,
    PlacesKernel,
    Repeat,
    ScatterKernel,
    Step,
)
from kina.kernels.memory import MemoryPlan, bytes_of
from kina.native.bands import band_tasks
from kina.native.code import Code
from kina.native.functions import Functions
from kina.native.layout import Layout, load_sizes, report_of, sizes_of, word
from kina.native.ordering import order_tasks
from kina.native.schedule import part_of, tasks_of

_PARAMETERS = "ptr %args, i64 %tid, i64 %n"
_WAIT = "call void @kina_barrier(i64 %n)"
_RELATIONS = {"=": "eq", "!=": "ne", "<": "slt", "<=": "sle", ">": "sgt", ">=": "sge"}


Demand = Check | Require | Open
"""What may end the program: a check, or a value that is no dimension."""
TOO_LARGE, NO_MEMORY = 1 << 32, 2 << 32
"""Added to the number of an `Open`: what depends on the dimension cannot be addressed, or there is no memory for it."""
MOST = 1 << 62
"""Bytes, elements and indices stay below this in machine code."""


def demands_of(steps: Sequence[Step]) -> list[Demand]:
    """What has to hold while the program runs, in the order in which it is numbered: from 1."""
    found: list[Demand] = []
    for step in steps:
        match step:
            case Check() | Require() | Open():
                found.append(step)
            case Repeat(test=test, body=body):
                found += demands_of((*test, *body))
            case Choice(then=then, otherwise=otherwise):
                found += demands_of((*then, *otherwise))
            case _:
                pass
    return found


class Regions:
    """Emits the functions of a program's steps; `texts` are all so far.

    `scratch` and `bands` are what each thread needs for products and for attention, in bytes.
    """

    def __init__(
        self, program: KernelProgram, layout: Layout, plan: MemoryPlan, functions: Functions, scratch: int, bands: Dim
    ) -> None:
        self.texts: list[str] = []
        self._layout = layout
        self._plan = plan
        self._slots = dict(zip(plan.late, report_of(program, plan).places, strict=True))
        self._functions = functions
        self._scratch = scratch
        self._bands = bands
        self._numbers = {id(kernel): number for number, kernel in enumerate(program.kernels)}
        self._demands = {id(demand): number for number, demand in enumerate(demands_of(program.steps), 1)}
        self._count = 0

    def steps(self, steps: Sequence[Step], opened: Open | None = None) -> str:
        """The name of a function that runs steps; first, what comes of a dimension that was `opened` before."""
        code = self._code()
        if opened is not None:
            self._opened(code, opened)
        for number, step in enumerate(steps, 1):
            match step:
                case LoopKernel() | GemmKernel() | OrderKernel() | ScatterKernel() | PlacesKernel() | BandKernel():
                    self._kernel(code, step)
                case Repeat():
                    self._run(code, self._repeat(step))
                    if step.steps is not None:  # sizes are read where a function begins: what follows needs this one
                        self._run(code, self.steps(steps[number:]))
                        break
                case Choice():
                    self._choice(code, step)
                case Check(proposition=claim):
                    self._demand(code, self._holds(code, claim), step)
                case Require(condition=condition):
                    code.do(_WAIT)
                    found = self._truth(code, condition)
                    code.do(_WAIT)  # before another value takes the place of the condition
                    self._demand(code, found, step)
                case Open():
                    self._open(code, step)
                    self._run(code, self.steps(steps[number:], step))
                    break
        return self._finished(code, "steps")

    # ------------------------------------------------------------ kernels

    def _kernel(self, code: Code, kernel: Kernel) -> None:
        """This thread's part of a kernel's tasks."""
        if self._numbers[id(kernel)] in self._plan.waits:
            code.do(_WAIT)
        if isinstance(kernel, GemmKernel | ScatterKernel | PlacesKernel):
            code.do(self._functions.call(kernel, _PARAMETERS))
            return
        tasks = code.dim(_tasks(kernel))
        begin, end = (part_of(code, tasks, which) for which in ("%tid", code.let("add i64 %tid, 1")))
        given = f"ptr %args, i64 {begin}, i64 {end}"
        if isinstance(kernel, BandKernel):
            code.do(f"call void @{self._functions.band_function(kernel)}({given}, i64 %tid, ptr {self._own(code)})")
        else:
            code.do(self._functions.call(kernel, given))

    def _own(self, code: Code) -> str:
        """This thread's memory for bands: after the scratch of all threads."""
        start = word(code, self._layout.scratch, "ptr", "scratch")
        after = code.let(f"mul i64 %n, {self._scratch}")
        own = code.let(f"mul i64 %tid, {code.dim(self._bands)}")
        return code.let(f"getelementptr i8, ptr {start}, i64 {code.let(f'add i64 {after}, {own}')}")

    # ------------------------------------------------------------ loops

    def _repeat(self, loop: Repeat) -> str:
        """The name of a loop's function."""
        entry, test, body, leaving = (self.steps(part) for part in (loop.entry, loop.test, loop.body, loop.leaving))
        code = self._code()
        code.do(_WAIT)
        for item in loop.states:
            if item.grows and loop.steps is None:
                self._share(code, item.last, item.state)
            self._share(code, item.state, item.start)
            if item.grows:
                self._share(code, item.state, item.following)
        self._set(code, loop.index, "0")
        self._run(code, entry)
        code.do(_WAIT)
        counter = code.at_entry("alloca i64", "step")
        code.do(f"store i64 0, ptr {counter}")
        head, inside, done = (code.fresh_label(stem) for stem in ("steps", "step", "through"))
        code.do(f"br label %{head}")
        code.label(head)
        step = code.let(f"load i64, ptr {counter}")
        self._set(code, loop.index, step)
        if loop.bound is not None:
            under = code.fresh_label("under")
            code.do(f"br i1 {code.let(f'icmp slt i64 {step}, {code.dim(loop.bound)}')}, label %{under}, label %{done}")
            code.label(under)
        if loop.condition is not None:
            self._run(code, test)
            code.do(_WAIT)
            code.do(f"br i1 {self._truth(code, loop.condition)}, label %{inside}, label %{done}")
        else:
            code.do(f"br label %{inside}")
        code.label(inside)
        for value, result in loop.yields:
            start = self._address(code, result)
            part = code.let(f"mul i64 {step}, {code.dim(bytes_of(value))}")
            self._place(code, value, code.let(f"add i64 {start}, {part}"))
        self._run(code, body)
        code.do(_WAIT)
        for item in loop.states:
            if not item.grows:
                now, before = self._address(code, item.following), self._address(code, item.state)
                self._place(code, item.state, now)
                self._place(code, item.following, before)
        code.do(f"store i64 {code.let(f'add i64 {step}, 1')}, ptr {counter}")
        code.do(f"br label %{head}")
        code.label(done)
        if loop.steps is not None:
            self._set(code, loop.steps, code.let(f"load i64, ptr {counter}"))
        self._run(code, leaving)
        code.do(_WAIT)
        return self._finished(code, "repeat")

    # ------------------------------------------------------------ branches and checks

    def _choice(self, code: Code, choice: Choice) -> None:
        then, otherwise = self.steps(choice.then), self.steps(choice.otherwise)
        yes, no, joined = (code.fresh_label(stem) for stem in ("then", "else", "joined"))
        code.do(_WAIT)
        chosen = choice.condition
        truth = self._truth(code, chosen) if isinstance(chosen, Value) else self._holds(code, chosen)
        code.do(f"br i1 {truth}, label %{yes}, label %{no}")
        for label, steps, number in ((yes, then, 1), (no, otherwise, 2)):
            code.label(label)
            for names in choice.results:
                self._share(code, names[0], names[number])
            self._run(code, steps)
            code.do(f"br label %{joined}")
        code.label(joined)
        code.do(_WAIT)

    def _demand(self, code: Code, truth: str, demand: Demand, how: int = 0) -> None:
        fine, failed = code.fresh_label("fine"), code.fresh_label("failed")
        code.do(f"br i1 {truth}, label %{fine}, label %{failed}")
        code.label(failed)
        code.do(f"ret i64 {self._demands[id(demand)] + how}")
        code.label(fine)

    def _truth(self, code: Code, value: Value) -> str:
        """A Bool in memory, read here."""
        pointer = code.let(f"inttoptr i64 {self._address(code, value)} to ptr")
        return code.let(f"icmp ne i8 {code.let(f'load i8, ptr {pointer}')}, 0")

    def _holds(self, code: Code, claim: Proposition) -> str:
        match claim:
            case Comparison(relation, left, right):
                return code.let(f"icmp {_RELATIONS[relation]} i64 {code.dim(left)}, {code.dim(right)}")
            case And(items) | Or(items):
                joint, total = ("and", "true") if isinstance(claim, And) else ("or", "false")
                for item in items:
                    total = code.let(f"{joint} i1 {total}, {self._holds(code, item)}")
                return total

    # ------------------------------------------------------------ dimensions from values

    def _open(self, code: Code, step: Open) -> None:
        """Reads a dimension."""
        code.do(_WAIT)
        pointer = code.let(f"inttoptr i64 {self._address(code, step.value)} to ptr")
        size = code.let(f"load i64, ptr {pointer}")
        code.do(_WAIT)  # before another value takes the place of this one
        self._set(code, step.dimension, size)
        self._demand(code, code.let(f"icmp sge i64 {size}, 0"), step)

    def _opened(self, code: Code, step: Open) -> None:
        """Checks what is said of a dimension, and takes the memory whose size is known with it."""
        for fact in step.facts:
            self._demand(code, self._holds(code, fact), step)
        known = {place: slot for place, slot in self._slots.items() if place.known_with == step.dimension}
        for place in known:
            bytes_ = _magnitude(code, place.size)
            self._demand(code, code.let(f"fcmp olt double {bytes_}, {float(MOST):.1f}"), step, TOO_LARGE)
        for place, slot in known.items():
            self._reserve(code, slot, code.dim(place.size))
            address = code.let(f"load i64, ptr {self._report(code, slot)}")
            self._demand(code, code.let(f"icmp ne i64 {address}, 0"), step, NO_MEMORY)
            for value in place.values:
                self._place(code, value, address)

    def _reserve(self, code: Code, slot: int, size: str) -> None:
        """One thread takes memory of at least a size, unless there is as much from the last time."""
        take, taken = code.fresh_label("take"), code.fresh_label("taken")
        code.do(f"br i1 {code.let('icmp eq i64 %tid, 0')}, label %{take}, label %{taken}")
        code.label(take)
        code.do(f"call void @kina_reserve(ptr {self._report(code, slot)}, i64 {size})")
        code.do(f"br label %{taken}")
        code.label(taken)
        code.do(_WAIT)

    def _report(self, code: Code, number: int) -> str:
        """Where a word of the report is."""
        report = word(code, self._layout.report, "ptr", "report")
        return code.let(f"getelementptr inbounds i64, ptr {report}, i64 {number}")

    # ------------------------------------------------------------ the argument block

    def _share(self, code: Code, owner: Value, value: Value) -> None:
        """The value lies where its owner lies."""
        self._place(code, value, self._address(code, owner))

    def _address(self, code: Code, value: Value) -> str:
        return code.let(f"load i64, ptr {self._word(code, self._layout.places[value])}")

    def _place(self, code: Code, value: Value, address: str) -> None:
        code.do(f"store i64 {address}, ptr {self._word(code, self._layout.places[value])}")

    def _set(self, code: Code, size: str, number: str) -> None:
        code.do(f"store i64 {number}, ptr {self._word(code, self._layout.made[size])}")

    @staticmethod
    def _word(code: Code, number: int) -> str:
        return code.let(f"getelementptr inbounds i64, ptr %args, i64 {number}")

    # ------------------------------------------------------------ functions

    def _code(self) -> Code:
        return Code(sizes_of(self._layout))

    def _run(self, code: Code, function: str) -> None:
        """Calls a function of steps, and returns where a check in it failed."""
        status = code.let(f"call i64 @{function}({_PARAMETERS})")
        failed, fine = code.fresh_label("failed"), code.fresh_label("fine")
        code.do(f"br i1 {code.let(f'icmp eq i64 {status}, 0')}, label %{fine}, label %{failed}")
        code.label(failed)
        code.do(f"ret i64 {status}")
        code.label(fine)

    def _finished(self, code: Code, stem: str) -> str:
        code.do("ret i64 0")
        self._count += 1
        name = f"{stem}{self._count}"
        self.texts.append(code.function(f"internal i64 @{name}({_PARAMETERS})", load_sizes(self._layout)))
        return name


def _magnitude(code: Code, d: Dim) -> str:
    """A bound of a size as a float, which does not wrap."""
    total = "0.0"
    for monomial, number in d.terms:
        term = f"{float(abs(number)):.1f}"
        for atom in monomial:
            term = code.let(f"fmul double {term}, {_magnitude_of_atom(code, atom)}")
        total = code.let(f"fadd double {total}, {term}")
    return total


def _magnitude_of_atom(code: Code, atom: Atom) -> str:
    if isinstance(atom, Variable):
        return code.let(f"sitofp i64 {code.dim(variable(atom.name))} to double")
    first, second = (_magnitude(code, part) for part in parts(atom))
    match atom:
        case Minimum() | Maximum():
            which = "minnum" if isinstance(atom, Minimum) else "maxnum"
            return code.let(f"call double @llvm.{which}.f64(double {first}, double {second})")
        case Modulo():
            return second
        case _:
            at_least_one = code.let(f"call double @llvm.maxnum.f64(double {second}, double 1.0)")
            return code.let(f"fadd double {code.let(f'fdiv double {first}, {at_least_one}')}, 1.0")


def _tasks(kernel: LoopKernel | BandKernel | OrderKernel) -> Dim:
    """How many tasks threads share."""
    match kernel:
        case BandKernel():
            return band_tasks(kernel)
        case OrderKernel():
            return order_tasks(kernel)
        case LoopKernel():
            return tasks_of(kernel)
