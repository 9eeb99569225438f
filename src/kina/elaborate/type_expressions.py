"""Surface expressions read as types."""

from __future__ import annotations

from kina.diagnostics import form_errors as errors
from kina.dims.dim import Dim, constant, modulo, variable
from kina.dims.proposition import Proposition, equal
from kina.elaborate.context import Context, ModuleContext, Reported
from kina.elaborate.dimensions import read_assumption, read_shape, read_size
from kina.elaborate.effects import read_effects
from kina.elaborate.obligations import oblige
from kina.elaborate.spellings import dtype_spelling
from kina.source import Span
from kina.syntax import ast
from kina.types import Argument, Arrow, DType, Exists, List, Record, Tensor, Tuple, Type

_DTYPES = {d.value: d for d in DType}


def read_type(context: Context, e: ast.Expr) -> Type:
    """A type. Sizes in it are obliged to be defined and not negative."""
    match e:
        case ast.Bracket(target=ast.Name(text="Tensor"), items=(element, ast.ListLiteral(items=shape))):
            return _tensor(context, e.span, element, shape)
        case ast.Bracket(target=ast.Name(text="Tensor")) | ast.Name(text="Tensor"):
            raise context.report(
                errors.malformed_type(e.span, "a tensor type is written Tensor[F32, [B, S]], or F32[B, S]")
            )
        case ast.Bracket(target=ast.Name(text="Idx"), items=(_,)):
            _no_sugar(context, e.span, f"`{e.span.text}` for a scalar", f"Tensor[{e.span.text}, []]")
            return _tensor(context, e.span, e, ())
        case ast.Bracket(target=ast.Bracket(target=ast.Name(text="Idx")) as element, items=shape):
            _no_sugar(context, e.span, f"`{element.span.text}[...]`", f"Tensor[{element.span.text}, [...]]")
            return _tensor(context, e.span, element, shape)
        case ast.Bracket(target=ast.Name(text=name) as element, items=shape) if _is_dtype(context, name):
            _no_sugar(context, e.span, f"`{name}[...]`", f"Tensor[{name}, [...]]")
            return _tensor(context, e.span, element, shape)
        case ast.Name(text=name) if _is_dtype(context, name):
            _no_sugar(context, e.span, f"`{name}` for a scalar", f"Tensor[{name}, []]")
            return _tensor(context, e.span, e, ())
        case ast.TupleLiteral(items=items):
            return Tuple(tuple(read_type(context, item) for item in items))
        case ast.Bracket(target=ast.Name(text="List"), items=(size, item)):
            return List(read_size(context, size), read_type(context, item))
        case ast.Bracket(target=ast.Name(text="List")) | ast.Name(text="List"):
            raise context.report(errors.malformed_type(e.span, "a list type is written List[N, T]"))
        case ast.Arrow(parameter=parameter, result=result, effects=effects):
            allowed = read_effects(context, effects or (), e.span)
            return Arrow(read_type(context, parameter), read_type(context, result), allowed)
        case ast.Exists():
            return _exists(context, e)
        case ast.Hole(name="") | ast.Bracket(target=ast.Hole(name="")):
            raise context.unreadable()
        case ast.Bracket(target=ast.Name() | ast.FieldAccess() as target, items=arguments):
            return _declared(context, e.span, target, arguments)
        case ast.Name() | ast.FieldAccess():
            return _declared(context, e.span, e, ())
        case _:
            raise context.report(
                errors.malformed_type(
                    e.span, "a type is a tensor such as F32[B, S], a declared type, or a tuple or function of types"
                )
            )


def _no_sugar(context: Context, span: Span, what: str, instead: str) -> None:
    if context.home.strict:
        raise context.report(errors.sugar(span, what, instead))


def _is_dtype(context: Context, name: str) -> bool:
    return name in _DTYPES or name in context.dtypes


# ---------------------------------------------------------------- tensors


def _tensor(context: Context, span: Span, element: ast.Expr, items: tuple[ast.Expr, ...]) -> Tensor:
    dtype, bound = read_element(context, element)
    shape = read_shape(context, items)
    if dtype.block is not None:
        if not shape:
            why = f"{dtype} is stored in blocks, so it has at least one axis"
            raise context.report(errors.malformed_type(span, why))
        claim = equal(modulo(shape[-1], constant(dtype.block)), constant(0))
        if context.whole_blocks is not None and isinstance(element, ast.Name) and element.text in context.dtypes:
            context.whole_blocks.append(claim)  # `T : Weight`: only for quantised T, so it cannot be written there
        else:
            oblige(context, claim, span, f"{dtype} is stored in blocks of {dtype.block} along the last axis")
    return Tensor(dtype, shape, bound)


def read_element(context: Context, e: ast.Expr) -> tuple[DType, Dim | None]:
    """An element type, and for `Idx[V]` the bound of its numbers."""
    match e:
        case ast.Bracket(target=ast.Name(text="Idx"), items=(size,)):
            return DType.I64, read_size(context, size)
        case ast.Bracket(target=ast.Name(text="Idx")) | ast.Name(text="Idx"):
            raise context.report(errors.malformed_type(e.span, "an index type is written Idx[V]"))
        case _:
            return read_dtype(context, e), None


def read_dtype(context: Context, e: ast.Expr) -> DType:
    match e:
        case ast.Name(text=name) if name in context.dtypes:
            return context.dtypes[name]
        case ast.Name(text=name) if name in _DTYPES:
            return _DTYPES[name]
        case ast.Bracket(target=ast.Name(text="Idx")):
            raise context.report(errors.malformed_type(e.span, "Idx[V] is no dtype of its own: it is I64 with a bound"))
        case ast.Hole(name=""):
            raise context.unreadable()
        case ast.Name(text=name):
            spelling = dtype_spelling(name)
            known = (*_DTYPES, *context.dtypes, "Tensor", *context.home.types)
            raise context.report(errors.unknown_type(e.span, name, known, spelling and spelling.value))
        case _:
            raise context.report(errors.malformed_type(e.span, f"an element type is one of {' '.join(_DTYPES)}"))


# ---------------------------------------------------------------- declared types


def _declared(context: Context, span: Span, target: ast.Name | ast.FieldAccess, items: tuple[ast.Expr, ...]) -> Type:
    """`Layer[D, 4 * D]`: a record, or what an alias stands for."""
    found = context.home.find_type(target)
    if found is None:
        if isinstance(target, ast.Name):
            read_dtype(context, target)
            raise context.report(errors.malformed_type(span, "this is not a type"))
        raise context.report(errors.unknown_type(span, target.span.text, ()))
    home, declaration = found
    if len(items) != len(declaration.binders):
        wanted = [binder.span.text for binder in declaration.binders]
        raise context.report(errors.wrong_type_arguments(span, declaration.name, wanted, len(items)))
    if declaration in home.types_in_progress:
        raise _recursive(context, span, home, declaration)
    arguments = [read_argument(context, binder, item) for binder, item in zip(declaration.binders, items, strict=True)]
    home.types_in_progress.append(declaration)
    try:
        with context.scope():
            enter_declaration(context, home, declaration.binders, arguments)
            if declaration.fields is None:
                assert declaration.definition is not None
                return read_type(context, declaration.definition)
            fields = tuple((field.name, read_type(context, field.type)) for field in declaration.fields)
            return Record(declaration.name, tuple(arguments), fields)
    finally:
        home.types_in_progress.pop()


def _recursive(context: Context, span: Span, home: ModuleContext, declaration: ast.TypeDeclaration) -> Reported:
    """The error for a type that comes to itself again: once for all types of the cycle."""
    cycle = home.types_in_progress[home.types_in_progress.index(declaration) :]
    names = {d.name for d in cycle}
    if not names.isdisjoint(home.recursive_types):
        return Reported()
    home.recursive_types |= names
    return context.report(errors.recursive_type(span, declaration.name))


def read_argument(context: Context, binder: ast.Binder, e: ast.Expr) -> Argument:
    """What is given for a binder: a size, a dtype, or (for `...S`) a shape."""
    if binder.segment:
        if isinstance(e, ast.ListLiteral):
            return read_shape(context, e.items)
        if isinstance(e, ast.Spread):
            return read_shape(context, (e,))
        raise context.report(errors.malformed_type(e.span, f"a shape is wanted for ...{binder.name}: [A, B], or ...S"))
    if binder.kind is not None:
        return read_dtype(context, e)
    return read_size(context, e)


def enter_declaration(
    context: Context, home: ModuleContext, binders: tuple[ast.Binder, ...], given: list[Argument]
) -> None:
    """In a scope of its own: names mean what they mean in `home`, binders what is given."""
    context.home = home
    context.dims, context.indices, context.dtypes, context.segments, context.values = {}, {}, {}, {}, {}
    for binder, argument in zip(binders, given, strict=True):
        bind_argument(context, binder, argument)


def bind_argument(context: Context, binder: ast.Binder, argument: Argument) -> None:
    if isinstance(argument, Dim):
        context.dims[binder.name] = argument
    elif isinstance(argument, DType):
        context.dtypes[binder.name] = argument
    else:
        context.segments[binder.name] = argument


# ---------------------------------------------------------------- existentials


def _exists(context: Context, e: ast.Exists) -> Exists:
    with context.scope():
        names = []
        for binder in e.names:
            if binder.segment or binder.kind is not None:
                raise context.report(errors.malformed_type(binder.span, "an existential type hides sizes only"))
            name = context.dimensions.apart(binder.name)
            bind_argument(context, binder, variable(name))
            names.append(name)
        claims: list[Proposition] = []
        for claim in e.requires:
            found = read_assumption(context, claim)
            claims += found
            context.assume(*found)
        body = read_type(context, e.body)
    if isinstance(body, Exists | Arrow):
        raise context.report(errors.malformed_type(e.body.span, "`exists` is followed by a type of values"))
    return Exists(tuple(names), tuple(claims), body)
