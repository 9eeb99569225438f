"""A module's syntax tree -> typed core, with every obligation settled."""

from __future__ import annotations

from kina.core.ir import Call, Function, Program, statements_within
from kina.diagnostics import form_errors
from kina.elaborate.context import ModuleContext
from kina.elaborate.functions import elaborate_function
from kina.elaborate.result import Elaboration
from kina.syntax import ast


def elaborate(module: ast.Module, *, strict: bool = False) -> Elaboration:
    """Checks every declaration. Errors do not stop it: each function is checked on its own.

    `strict` refuses surface sugar, so that what is accepted is core as it is printed.
    """
    declarations: dict[str, ast.FunctionDeclaration] = {}
    context = ModuleContext(strict, declarations)
    for declaration in module.declarations:
        match declaration:
            case ast.FunctionDeclaration(name=name):
                if name in declarations:
                    first = declarations[name].name_span
                    context.report(form_errors.defined_twice(declaration.name_span, name, first))
                else:
                    declarations[name] = declaration
            case ast.ImportDeclaration():
                context.report(form_errors.unsupported(declaration.span, "imports"))
            case ast.TypeDeclaration():
                context.report(form_errors.unsupported(declaration.name_span, "type declarations"))
            case ast.TestDeclaration():
                context.report(form_errors.unsupported(declaration.span, "`test` declarations"))
    for name, declaration in declarations.items():
        if name not in context.functions and name not in context.failed:
            elaborate_function(context, declaration)
    program = Program(_callees_first(context.functions))
    return Elaboration(program, context.signatures, tuple(context.diagnostics), tuple(context.obligations))


def _callees_first(functions: dict[str, Function]) -> dict[str, Function]:
    """The functions in an order in which each stands after those that it calls."""
    ordered: dict[str, Function] = {}

    def visit(function: Function) -> None:
        if function.name in ordered:
            return
        for statement in statements_within(function.statements):
            if isinstance(statement, Call):
                visit(statement.function)
        ordered[function.name] = function

    for function in functions.values():
        visit(function)
    return ordered
