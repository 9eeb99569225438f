"""What a call puts for the generic binders of its callee."""

from __future__ import annotations

from collections.abc import Sequence

from kina.core.ir import tree_type
from kina.diagnostics import shape_errors
from kina.elaborate.closures import is_function
from kina.elaborate.context import Context, Meaning, ModuleContext
from kina.elaborate.dispatch import as_value, infer
from kina.elaborate.generics import Matching, admits
from kina.elaborate.literals import adapts
from kina.source import Span
from kina.syntax import ast
from kina.types import Argument, DType


def choose(
    context: Context, span: Span, home: ModuleContext, declaration: ast.FunctionDeclaration,
    types: Sequence[ast.Expr | None], arguments: Sequence[ast.Expr], given: dict[str, Argument | int],
) -> dict[int, Meaning]:  # fmt: skip
    """Adds to `given` what the arguments say of dtypes, and (as a number of axes) of segments.

    Gives the arguments that were looked at. Literals are only looked at where nothing else tells.
    """
    matching = Matching(home, declaration)
    for name, argument in given.items():
        if isinstance(argument, DType):
            matching.dtypes[name] = argument
        elif isinstance(argument, tuple):
            matching.ranks[name] = len(argument)
    known: dict[int, Meaning] = {}
    for literals in (False, True):
        if literals and not matching.open():
            break
        for n, (type_, e) in enumerate(zip(types, arguments, strict=True)):
            if type_ is None or isinstance(type_, ast.Arrow) or adapts(context, e) != literals:
                continue
            found = known[n] = infer(context, e)
            if not is_function(found):
                matching.match(type_, tree_type(as_value(context, found, e.span)))
    missing = matching.open()
    if missing:
        names = [b.name for b in declaration.binders]
        raise context.report(shape_errors.cannot_infer(span, declaration.name, missing, names))
    for binder in declaration.binders:
        if binder.kind is not None:
            dtype = matching.dtypes[binder.name]
            if not admits(binder.kind, dtype):
                raise context.report(shape_errors.wrong_class(span, declaration.name, binder.name, binder.kind, dtype))
            given[binder.name] = dtype
        elif binder.segment:
            given.setdefault(binder.name, matching.ranks[binder.name])
    return known
