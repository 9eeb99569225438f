"""`test` declarations: each becomes a function without parameters, whose result is what it claims.

A test holds if it runs to its end and everything in its result is true. `rejects "text" e` holds if `e` is refused with
this text in the error: by the checker, or by a check when it runs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kina.core.ir import Function, leaves
from kina.diagnostics import Diagnostic, Severity, effect_errors, form_errors
from kina.elaborate.context import Context, ModuleContext, Reported
from kina.elaborate.functions import elaborate_declaration
from kina.elaborate.matching import conform
from kina.source import Span
from kina.syntax import ast
from kina.types import DType, Tensor

_CLAIM = Tensor(DType.BOOL, ())


@dataclass(frozen=True, slots=True)
class Test:
    """A checked test. `rejects` is what has to stand in the error that it expects; `refused` is the checker's error
    that has it, and then there is nothing to run."""

    name: str
    span: Span
    function: Function | None
    rejects: str | None = None
    refused: Diagnostic | None = None


def check_tests(module: ModuleContext, tests: list[ast.TestDeclaration]) -> list[Test]:
    """The tests of a module that have no errors. What is wrong with the others is recorded."""
    found: list[Test] = []
    first: dict[str, Span] = {}
    for declaration in tests:
        if declaration.name in first:
            module.report(form_errors.defined_twice(declaration.span, declaration.name, first[declaration.name]))
            continue
        first[declaration.name] = declaration.span
        test = _checked(module, declaration)
        if test is not None:
            found.append(test)
    return found


def _checked(module: ModuleContext, declaration: ast.TestDeclaration) -> Test | None:
    expected, body = _expectation(declaration.body)
    if expected is None and body is not declaration.body:
        with module.checking(key_of(declaration)):
            module.report(form_errors.message_wanted(body.span, "rejects"))
        return None
    function = _elaborated(module, declaration, body)
    found = module.findings[key_of(declaration)]
    errors = [d for d in found.diagnostics if d.severity is Severity.ERROR]
    if expected is not None and errors and any(_says(d, expected) for d in errors):
        refused = next(d for d in errors if _says(d, expected))
        found.diagnostics[:] = [d for d in found.diagnostics if d.severity is not Severity.ERROR]
        return Test(declaration.name, declaration.span, None, expected, refused)
    if function is None or errors:
        if expected is not None:
            note = f'the test expects an error that says "{expected}"'
            found.diagnostics[:] = [replace(d, notes=(*d.notes, note)) for d in found.diagnostics]
        return None
    if expected is None:
        with module.resumed(key_of(declaration)):
            if not _claims_only(module, declaration, function):
                return None
    return Test(declaration.name, declaration.span, function, expected)


def key_of(declaration: ast.TestDeclaration) -> str:
    """What a test is called among functions: no name that a program can write."""
    return f'test "{declaration.name}"'


def _expectation(e: ast.Expr) -> tuple[str | None, ast.Expr]:
    """What `rejects "text" e` expects, and e. Where the text is missing, None and what stands in its place."""
    match e:
        case ast.Apply(function=ast.Name(text="rejects") | ast.FieldAccess(name="rejects"), arguments=(text, body)):
            return (text.value, body) if isinstance(text, ast.String) else (None, text)
        case ast.Apply(function=ast.Name(text="rejects") | ast.FieldAccess(name="rejects"), arguments=(first, *_)):
            return None, first
    return None, e


def _elaborated(module: ModuleContext, declaration: ast.TestDeclaration, body: ast.Expr) -> Function | None:
    name = key_of(declaration)
    span = declaration.span
    function = ast.FunctionDeclaration(name, (), (), (), None, None, body, name_span=span, span=span)
    elaborate_declaration(module, function)
    module.signatures.pop(name, None)
    if name in module.inlined:
        with module.resumed(name):
            module.report(form_errors.function_as_value(body.span, "a function"))
    drawn = module.effects.get(name, {}).get("rand")
    if drawn is not None:
        with module.resumed(name):
            module.report(effect_errors.unhandled_draw(drawn.span, drawn.shown))
    return module.functions.pop(name, None)


def _claims_only(module: ModuleContext, declaration: ast.TestDeclaration, function: Function) -> bool:
    """Whether all that a test gives are scalar Bools; else an error is recorded."""
    context = Context(module, module, ast.FunctionDeclaration(
        function.name, (), (), (), None, None, declaration.body, name_span=declaration.span, span=declaration.span,
    ))  # fmt: skip
    try:
        for claim in leaves(function.result):
            conform(context, claim, _CLAIM, declaration.body.span, "what a test claims", None)
    except Reported:
        return False
    return True


def _says(d: Diagnostic, text: str) -> bool:
    return text in d.code or any(text in part for part in (d.message, d.label, *d.notes))
