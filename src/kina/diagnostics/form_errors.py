"""Errors about names and forms: K02xx. One constructor a code; the page of each is in `pages/`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kina.diagnostics.diagnostic import Diagnostic, Edit, Help, Label, Severity
from kina.diagnostics.names import closest
from kina.diagnostics.names import nearest as nearest  # for those who look for it here
from kina.source import Span


def _error(code: str, message: str, span: Span, label: str = "", **more: object) -> Diagnostic:
    return Diagnostic(code, Severity.ERROR, message, span, label, **more)  # type: ignore[arg-type]


def _did_you_mean(span: Span, name: str, known: Iterable[str], uses: Sequence[Span] = ()) -> tuple[Help, ...]:
    """The closest name, and others as guesses: which of them fits is seen when they are tried."""
    return tuple(
        Help(f"did you mean `{match}`?", tuple(Edit(at, match) for at in uses or (span,)), guess=n > 0)
        for n, match in enumerate(closest(name, known)[:3])
    )


# ---------------------------------------------------------------- K0201 unknown names


def unknown_name(
    span: Span, name: str, known: Iterable[str], advice: tuple[Help, ...] = (), uses: Sequence[Span] = ()
) -> Diagnostic:
    """`advice` is what is known of the name itself; a close name is offered only where nothing is. `uses` are all
    places where the name stands."""
    help_ = advice or _did_you_mean(span, name, known, uses)
    return _error("K0201", f"`{name}` is not defined", span, "no value, function or operation of this name", help=help_)


def unknown_dimension(span: Span, name: str, known: Iterable[str], declare: Edit) -> Diagnostic:
    """`declare` makes it a dimension of the function."""
    names = list(known)
    in_scope = (
        f"dimensions in scope: {', '.join(names)}"
        if names
        else "no dimension is in scope: declare it in [...] after the function's name"
    )
    return _error(
        "K0201", f"`{name}` is not a dimension in scope", span, notes=(in_scope,),
        help=_did_you_mean(span, name, names) or (Help(f"if `{name}` is another size, declare it", (declare,)),),
    )  # fmt: skip


def unknown_type(span: Span, name: str, known: Sequence[str], spelling: str | None = None) -> Diagnostic:
    help_ = (Help(f"it is called `{spelling}` here", (Edit(span, spelling),)),) if spelling else ()
    return _error("K0201", f"`{name}` is not a type", span, help=help_ or _did_you_mean(span, name, known))


def no_such_member(span: Span, name: str, advice: tuple[Help, ...]) -> Diagnostic:
    """`x.T`, `x.relu()`: tensors have neither fields nor methods."""
    return _error(
        "K0201", f"a tensor has no `{name}`", span, "tensors have no fields and no methods; operations are functions",
        help=advice,
    )  # fmt: skip


def unknown_segment(span: Span, name: str, known: Sequence[str]) -> Diagnostic:
    return _error(
        "K0201", f"`...{name}` is not a shape segment in scope", span,
        notes=(f"segments in scope: {', '.join(f'...{n}' for n in known)}" if known
               else f"declare it in the brackets after the function's name: [...{name}]",),
    )  # fmt: skip


def unknown_class(span: Span, name: str, known: Sequence[str]) -> Diagnostic:
    return _error(
        "K0201", f"`{name}` is not a class of dtypes", span, notes=(f"the classes are {', '.join(known)}",),
        help=_did_you_mean(span, name, known) if span.text == name else (),
    )  # fmt: skip


def unknown_field(span: Span, record: str, name: str, known: Sequence[str]) -> Diagnostic:
    return _error(
        "K0201", f"{record} has no field `{name}`", span, notes=(f"its fields: {', '.join(known) or 'none'}",),
        help=_did_you_mean(span, name, known),
    )  # fmt: skip


def no_such_export(span: Span, module: str, name: str, known: Iterable[str]) -> Diagnostic:
    """`m.f` where the module m has no f."""
    at = Span(span.source, span.end - len(name), span.end)
    return _error("K0201", f"the module {module} has no `{name}`", at, help=_did_you_mean(at, name, known))


def dimension_where_value(span: Span, name: str, floats: Sequence[object]) -> Diagnostic:
    """`floats` are the dtypes that may be wanted besides I64."""
    casts = (Help(f"as an {f}", (Edit(span, f"(cast[{f}] (dim_value {name}))"),), guess=True) for f in floats)
    return _error(
        "K0201", f"`{name}` is a dimension, not a value", span, "a tensor is wanted here",
        help=(Help(f"`dim_value {name}` is it as an I64", (Edit(span, f"(dim_value {name})"),)), *casts),
    )  # fmt: skip


def value_where_dimension(span: Span, name: str) -> Diagnostic:
    return _error("K0201", f"`{name}` is a value, not a dimension", span, "a dimension is wanted here")


# ---------------------------------------------------------------- K0202 not supported yet


def unsupported(span: Span, what: str) -> Diagnostic:
    return _error(
        "K0202",
        f"not supported yet: {what}",
        span,
        notes=(
            "the language has this form, this version of the compiler does not; docs/status.md lists what is missing",
        ),
    )


# ---------------------------------------------------------------- K0203 calls


def wrong_argument_count(
    span: Span, shown: str, wanted: Sequence[str], got: int, usage: str, help: tuple[Help, ...] = (),
    at_least: bool = False,
) -> Diagnostic:  # fmt: skip
    least = len(wanted) - 1 if at_least else len(wanted)
    many = f"{'at least ' if at_least else ''}{least} argument{'s' if least != 1 else ''}"
    return _error("K0203", f"`{shown}` takes {many}, and got {got}", span, notes=(f"usage: {usage}",), help=help)


def partial_application(
    span: Span, name: str, missing: Sequence[str], help: tuple[Help, ...] = ()
) -> Diagnostic:
    """Too few arguments where a value is wanted."""
    return _error(
        "K0203", f"`{name}` also needs {', '.join(missing)}", span,
        notes=("with arguments left out this is a function of the rest, and a value is wanted here",),
        help=help,
    )  # fmt: skip


def function_as_value(span: Span, what: str) -> Diagnostic:
    return _error("K0203", "a value is wanted here", span, f"this is {what}")


def function_wanted(span: Span, wanted: object, got: object) -> Diagnostic:
    shown = "" if wanted is None or "?" in str(wanted) else f": {wanted}"
    return _error("K0203", f"a function is wanted here{shown}", span, f"this is {got}")


def too_many_arguments(span: Span, name: str, count: int, result: object) -> Diagnostic:
    many = "one argument" if count == 1 else f"{count} arguments"
    return _error("K0203", f"`{name}` is given {many} too many", span, f"without them this is {result}")


def message_wanted(span: Span, what: str = "check") -> Diagnostic:
    return _error("K0203", f"`{what}` wants a message in double quotes", span, "a message is wanted here")


def nothing_to_run_over(span: Span, what: str, got: str) -> Diagnostic:
    return _error("K0203", f"`{what}` runs over a list or a leading axis", span, f"this is {got}")


def not_a_function(span: Span, type_: object) -> Diagnostic:
    return _error("K0203", "this is not a function, so it takes no arguments", span, f"this is {type_}")


def function_where_value(span: Span, name: str, parameters: Sequence[str]) -> Diagnostic:
    return _error(
        "K0203", f"`{name}` is a function, and its arguments are missing", span,
        notes=(f"usage: {name} {' '.join(parameters)}",),
    )  # fmt: skip


def too_many_dimensions(span: Span, name: str, wanted: Sequence[str], got: int) -> Diagnostic:
    listed = f"[{', '.join(wanted)}]" if wanted else "no dimensions"
    return _error("K0203", f"`{name}` takes {listed}, and got {got} dimension arguments", span)


# ---------------------------------------------------------------- K0204, K0205 declarations


def defined_twice(span: Span, name: str, first: Span) -> Diagnostic:
    return _error("K0204", f"`{name}` is defined twice", span, "again here", labels=(Label(first, "first here"),))


def recursion(span: Span, cycle: Sequence[str]) -> Diagnostic:
    way = " -> ".join(cycle)
    return _error(
        "K0205", f"functions may not recurse: {way}", span,
        notes=("every Kina program other than an unbounded `while` terminates; use `for` to repeat",),
    )  # fmt: skip


def recursive_type(span: Span, name: str) -> Diagnostic:
    return _error("K0205", f"the type {name} stands inside itself", span, "this would never end")


def import_cycle(span: Span, cycle: Sequence[str]) -> Diagnostic:
    return _error(
        "K0205", f"modules may not import each other: {' -> '.join(cycle)}", span,
        notes=("move what both need into a third module",),
    )  # fmt: skip


# ---------------------------------------------------------------- K0206 static parameters of operations


def bad_attribute(span: Span, message: str, usage: str, help: tuple[Help, ...] = ()) -> Diagnostic:
    return _error("K0206", message, span, notes=(f"usage: {usage}",), help=help)


def axis_out_of_range(
    span: Span, shown: str, axis: int, rank: int, shape: object, help: tuple[Help, ...] = ()
) -> Diagnostic:
    if rank == 0:
        note = "a scalar has no axes"
    else:
        note = f"{shape} has the axes 0 to {rank - 1}, or -{rank} to -1 counted from the end"
    return _error("K0206", f"`{shown}`: axis {axis} is out of range", span, notes=(note,), help=help)


def not_a_permutation(
    span: Span, shown: str, order: Sequence[int], rank: int, help: tuple[Help, ...] = ()
) -> Diagnostic:
    return _error(
        "K0206", f"`{shown}`: {list(order)} is not an order of the {rank} axes", span,
        notes=(f"each of {', '.join(map(str, range(rank))) or 'no axes'} has to stand in it once",), help=help,
    )  # fmt: skip


def bad_index(span: Span, what: str, help: tuple[Help, ...] = ()) -> Diagnostic:
    return _error("K0206", f"this index does not fit: {what}", span, help=help)


def refused(span: Span, message: str, help: str | None) -> Diagnostic:
    return _error("K0206", message, span, help=(Help(help),) if help else ())


# ---------------------------------------------------------------- K0207 holes


def hole(span: Span, name: str | None, wanted: object | None, scope: Sequence[tuple[str, object]]) -> Diagnostic:
    shown = f"?{name}" if name else "..."
    wants = (
        f"a value of type {wanted} is wanted here"
        if wanted is not None
        else "a value is wanted here; nothing says of which type"
    )
    width = max((len(n) for n, _ in scope), default=0)
    listed = "\n".join(f"{n:<{width}} : {t}" for n, t in scope)
    return _error(
        "K0207", f"hole `{shown}`: {wants}", span, "to be filled in",
        notes=("in scope:\n" + listed,) if scope else (),
    )  # fmt: skip


# ---------------------------------------------------------------- K0208, K0209 malformed sizes, claims, types


def not_a_dimension(span: Span, why: str) -> Diagnostic:
    return _error("K0208", "this is not a dimension", span, why)


def no_such_binder(span: Span, function: str, name: str, known: Sequence[str]) -> Diagnostic:
    """A dimension argument by a name that the function has not, or has been given."""
    why = f"{name} is given twice" if name in known else f"{function} has {', '.join(known)}"
    return _error("K0208", f"{function} takes no {'second ' if name in known else ''}{name} here", span, why)


def negative_size(span: Span, size: int, help: tuple[Help, ...] = ()) -> Diagnostic:
    return _error(
        "K0208", "a size cannot be negative", span,
        notes=("sizes are written out: -1 does not stand for what is left over",) if size == -1 else (),
        help=help,
    )  # fmt: skip


def unwieldy_size(span: Span) -> Diagnostic:
    return _error(
        "K0208", "a size that comes up here is too large an expression", span,
        notes=("written out as a sum of products, it has thousands of terms or numbers of a thousand digits",),
    )  # fmt: skip


def not_a_proposition(span: Span) -> Diagnostic:
    return _error(
        "K0208", "this is not a proposition about dimensions", span,
        "a comparison such as `D mod H = 0`, joined by `&&`, `||` and `not`, is wanted here",
    )  # fmt: skip


def malformed_type(span: Span, why: str) -> Diagnostic:
    return _error("K0209", "this is not a type", span, why)


def wrong_type_arguments(span: Span, name: str, wanted: Sequence[str], got: int) -> Diagnostic:
    shown = f"{name}[{', '.join(wanted)}]" if wanted else name
    return _error("K0209", f"{name} is written {shown}", span, f"{got} {'is' if got == 1 else 'are'} given here")


def missing_type(span: Span, name: str) -> Diagnostic:
    return _error("K0209", f"the parameter `{name}` needs a type", span, help=(Help(f"write ({name} : F32[...])"),))


# ---------------------------------------------------------------- K0210 literals, K0211 tuples, K0212 strict


def literal_does_not_fit(
    span: Span, text: str, dtype: object, why: str, help: tuple[Help, ...] = ()
) -> Diagnostic:
    return _error(
        "K0210",
        f"the literal {text} is not an {dtype}" if str(dtype)[0] in "IF" else f"the literal {text} is not a {dtype}",
        span,
        why,
        help=help,
    )


def ragged_literal(span: Span) -> Diagnostic:
    return _error("K0210", "the rows of a tensor literal have to be equally long", span)


def not_a_value(span: Span, what: str) -> Diagnostic:
    return _error("K0211", f"{what} is not a tensor", span, "a tensor is wanted here")


def wrong_tuple(span: Span, message: str, type_: object) -> Diagnostic:
    return _error("K0211", message, span, f"this is {type_}")


def sugar(span: Span, what: str, instead: str) -> Diagnostic:
    return _error("K0212", f"{what} is sugar, which --strict does not allow", span, help=(Help(f"write {instead}"),))


def missing_fields(span: Span, record: str, missing: Sequence[str]) -> Diagnostic:
    return _error("K0211", f"{record} also has {', '.join(f'`{name}`' for name in missing)}", span, "not given here")


def unknown_record(span: Span, fields: Sequence[str], fitting: Sequence[str]) -> Diagnostic:
    listed = ", ".join(fields) or "no fields"
    if fitting:
        why = f"{' and '.join(fitting)} have these fields: write which is meant, as in let r : {fitting[0]} = ..."
    else:
        why = "no record type in scope has just these fields"
    return _error("K0211", f"nothing says of which type this record is ({listed})", span, why)


# ---------------------------------------------------------------- K0213 existentials


def unopened(span: Span, type_: object, names: Sequence[str], mends: tuple[Help, ...] = ()) -> Diagnostic:
    return _error(
        "K0213", "the size of this is known only when the program runs", span, f"this is {type_}",
        help=(*mends, Help(f"give it a name: let [{', '.join(names)}] y = ... in")),
    )  # fmt: skip


def nothing_to_open(span: Span, type_: object) -> Diagnostic:
    return _error("K0213", "there is no size to be named here", span, f"this is {type_}")


def wrong_opening(span: Span, given: int, type_: object) -> Diagnostic:
    return _error("K0213", f"this names {given} size{'' if given == 1 else 's'} of {type_}", span)


def no_witness(span: Span, names: Sequence[str], wanted: object, got: object) -> Diagnostic:
    return _error(
        "K0213", f"nothing says what {', '.join(names)} of {wanted} is", span, f"this is {got}",
        notes=("a size that a type hides is found where it stands alone for an axis",),
    )  # fmt: skip


def size_escapes(span: Span, what: str, name: str, type_: object) -> Diagnostic:
    return _error(
        "K0213", f"{what} has a size that means nothing outside", span, f"this is {type_}",
        notes=(f"{name} is made anew inside, each time",),
    )  # fmt: skip


# ---------------------------------------------------------------- K0214 imports


def cannot_import(span: Span, path: str, why: str, known: Sequence[str] = ()) -> Diagnostic:
    """A module that is not there or cannot be read."""
    listed = (f"there are {', '.join(known)}",) if known else ()
    return _error("K0214", f"the module {path} cannot be imported: {why}", span, notes=listed)


def nothing_imported(span: Span, name: str, module: str, known: Iterable[str]) -> Diagnostic:
    return _error(
        "K0214", f"{module} has no `{name}`", span, help=_did_you_mean(span, name, known) if span.text == name else ()
    )


def import_has_errors(span: Span, module: str) -> Diagnostic:
    return _error("K0214", f"{module} has errors of its own", span, "they are shown with it")
