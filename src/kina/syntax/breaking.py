"""How an expression that does not fit on a line, or holds comments, is broken into lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from kina.syntax import ast
from kina.syntax import flat as one_line
from kina.syntax.flat import flat, needs_parentheses
from kina.syntax.lines import Lines
from kina.syntax.operators import (
    ARGUMENT,
    ARROW,
    ASSIGNMENT,
    BINARY,
    COMPARISON,
    POSTFIX,
    RIGHT_ASSOCIATIVE,
)

N = TypeVar("N", bound=ast.Node)
_INDENT = 2
_ATOMS = (ast.Number, ast.Name, ast.Boolean, ast.String)


class Breaker:
    """Writes expressions to lines. Wherever `tail` is given, so many characters follow on the same line."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines

    # ---------------------------------------------------------------- one expression

    def expression(self, e: ast.Expr, level: int = ARROW, equals: bool = False, tail: int = 0) -> None:
        """Writes an expression where the line stands, broken if it has to be."""
        if not self.lines.holds_comment(e.span.end) and not self.was_broken(e):
            text = flat(e, level, equals)
            if self.lines.fits(text, tail):
                self.lines.write(text)
                return
        if needs_parentheses(e, level, equals):
            self.lines.write("(")
            self.broken(e, True, tail + 1)
            self.lines.write(")")
        else:
            self.broken(e, equals, tail)

    def block(self, e: ast.Expr, indent: int, equals: bool = False, tail: int = 0) -> None:
        """Writes an expression on lines of its own."""
        self.lines.newline(indent, e.span.start, keep_blank=True)
        if isinstance(e, one_line.Lets):
            self.lets(e, equals, tail)
        else:
            self.expression(e, ARROW, equals, tail)

    def body(self, e: ast.Expr, indent: int, broken: bool, tail: int = 0) -> None:
        """Writes what stands after `=`: on the same line if it may and fits."""
        if not (broken or isinstance(e, one_line.Lets) or self.lines.holds_comment(e.span.end)):
            text = flat(e)
            if self.lines.fits(f" {text}", tail):
                self.lines.write(f" {text}")
                return
        self.block(e, indent, tail=tail)

    def is_broken_before(self, e: ast.Expr) -> bool:
        """Whether the author began a line with this expression."""
        start = e.span.start
        line_start = self.lines.source.text.rfind("\n", 0, start) + 1
        return not self.lines.source.text[line_start:start].strip("( \t\r\f\v")

    def was_broken(self, e: ast.Expr) -> bool:
        """Whether the author broke a loop or a branch before its body."""
        match e:
            case ast.For(body=body, yielded=yielded):
                inner = body if body is not None else yielded
                return inner is not None and self.is_broken_before(inner)
            case ast.While(body=body) | ast.If(then=body):
                return self.is_broken_before(body)
            case _:
                return False

    def broken(self, e: ast.Expr, equals: bool, tail: int) -> None:
        """Writes an expression in several lines, as far as its form has any."""
        match e:
            case ast.Let() | ast.LetDim() | ast.LetAssert() | ast.LetAssertEq() | ast.LetFunction():
                self.lets(e, equals, tail)
            case ast.If():
                self.conditional(e, self.lines.column, equals, tail)
            case ast.For():
                self.for_loop(e, equals, tail)
            case ast.While():
                self.while_loop(e, equals, tail)
            case ast.Lambda():
                self.function_literal(e, self.lines.column, equals, tail)
            case ast.Exists():
                column = self.lines.column
                facts = "".join(f" {one_line.requirement(p)}" for p in e.requires)
                self.lines.write(f"exists {one_line.binders(e.names)}{facts}.")
                self.block(e.body, column + _INDENT, equals, tail)
            case ast.Binary():
                self.operators(e, equals, tail)
            case ast.Arrow():
                self.arrow(e, tail)
            case ast.Apply():
                self.application(e, tail)
            case _:
                self.bracketed(e, equals, tail)

    def bracketed(self, e: ast.Expr, equals: bool, tail: int) -> None:
        match e:
            case ast.ListLiteral(items=items):
                self.items("[", items, "]", False, tail)
            case ast.TupleLiteral(items=items):
                self.items("(", items, ",)" if len(items) == 1 else ")", True, tail)
            case ast.Bracket(target=target, items=items):
                self.expression(target, POSTFIX, tail=1)
                self.items("[", items, "]", False, tail)
            case ast.NamedItem(name=name, value=value):
                self.lines.write(f"{name}=")
                self.expression(value, tail=tail)
            case ast.RecordLiteral(fields=fields):
                self.fields("{ ", fields, tail)
            case ast.RecordUpdate(base=base, fields=fields):
                self.lines.write("{ ")
                self.expression(base, ASSIGNMENT, tail=6)
                self.fields(" with ", fields, tail)
            case ast.FieldAccess(target=target) | ast.Projection(target=target):
                name = e.name if isinstance(e, ast.FieldAccess) else str(e.index)
                if one_line.before_point(target).startswith("(") and not needs_parentheses(target, POSTFIX, False):
                    self.lines.write(flat(e))
                    return
                self.expression(target, POSTFIX, tail=len(name) + 1)
                self.lines.write(f".{name}")
            case ast.Unary(operator="-" | "not" as operator, operand=operand):
                self.lines.write("-" if operator == "-" else "not ")
                self.expression(operand, one_line.unary_level(operator), equals, tail)
            case _:
                self.lines.write(flat(e, equals=equals))

    # ---------------------------------------------------------------- let

    def lets(self, e: ast.Expr, equals: bool, tail: int) -> None:
        """One let a line, and the body on the last."""
        column = self.lines.column
        while isinstance(e, one_line.Lets):
            self.let(e, column)
            e = e.body
            self.lines.newline(column, e.span.start, keep_blank=True)
        self.expression(e, ARROW, equals, tail)

    def let(self, e: one_line.Lets, column: int) -> None:
        lines = self.lines
        match e:
            case ast.LetAssert(proposition=proposition):
                lines.write("let assert (")
                self.expression(proposition, equals=True, tail=4)
                lines.write(")")
            case ast.LetAssertEq():
                lines.write(one_line.let_head(e) + one_line.let_value(e))
            case ast.LetFunction(function=function):
                lines.write("let ")
                self.function(function, column, tail=3)
            case ast.Let(value=value) | ast.LetDim(value=value):
                head = one_line.let_head(e)
                if lines.fits(head) or not isinstance(e, ast.Let) or e.type is None:
                    lines.write(head.rstrip())
                else:
                    self.long_head(e, column)
                self.body(value, column + _INDENT, self.was_broken(value), tail=3)
        lines.write(" in")

    def long_head(self, e: ast.Let, column: int) -> None:
        """A let whose type needs lines of its own."""
        assert e.type is not None
        opened = f"{one_line.binders(e.opened)} " if e.opened else ""
        self.lines.write(f"let {opened}{one_line.pattern(e.pattern)}")
        self.lines.newline(column + 2 * _INDENT, e.type.span.start)
        self.lines.write(": ")
        self.expression(e.type, tail=2)
        self.lines.write(" =")

    # ---------------------------------------------------------------- functions

    def function(self, f: ast.FunctionDeclaration, column: int, tail: int = 0) -> None:
        """A function after its `let`, at whose column the lines of its body are aligned."""
        lines = self.lines
        text = f"{one_line.signature(f)} ="
        parts: list[ast.Node] = [*f.requires, *f.parameters, *([f.result] if f.result is not None else [])]
        end = max((p.span.end for p in parts), default=f.name_span.end)
        if lines.holds_comment(end) or not lines.fits(text):
            self.long_signature(f, column + 2 * _INDENT)
        else:
            lines.write(text)
        self.body(f.body, column + _INDENT, self.is_broken_before(f.body) or self.was_broken(f.body), tail)

    def long_signature(self, f: ast.FunctionDeclaration, indent: int) -> None:
        """A signature with one part a line."""
        lines = self.lines
        lines.write(one_line.signature_name(f))
        for proposition in f.requires:
            lines.newline(indent, proposition.span.start)
            lines.write("requires (")
            self.expression(proposition, equals=True, tail=1)
            lines.write(")")
        for p in f.parameters:
            lines.newline(indent, p.span.start)
            self.parameter(p)
        if f.result is not None:
            lines.newline(indent, f.result.span.start)
            lines.write(": ")
            ambiguous = f.effects is not None and isinstance(f.result, ast.Arrow)
            after = len(one_line.effects(f.effects)) + 2
            self.expression(f.result, ASSIGNMENT if ambiguous else ARROW, tail=after)
        lines.write(f"{one_line.effects(f.effects)} =")

    def parameter(self, p: ast.Parameter) -> None:
        if p.type is None:
            self.lines.write(p.name)
            return
        self.lines.write(f"({p.name} : ")
        self.expression(p.type, tail=1)
        self.lines.write(")")

    def function_literal(self, e: ast.Lambda, column: int, equals: bool, tail: int) -> None:
        self.lines.write(one_line.lambda_head(e))
        self.block(e.body, column + _INDENT, equals, tail)

    # ---------------------------------------------------------------- control

    def conditional(self, e: ast.If, column: int, equals: bool, tail: int) -> None:
        """`if c then`, the branch, `else` and the other, each below the other; `else if` on one line."""
        self.lines.write("if ")
        self.expression(e.condition, ASSIGNMENT, True, tail=5)
        self.lines.write(" then")
        self.block(e.then, column + _INDENT, equals)
        self.lines.newline(column, e.otherwise.span.start)
        self.lines.write("else")
        if isinstance(e.otherwise, ast.If):
            self.lines.write(" ")
            self.conditional(e.otherwise, column, equals, tail)
        else:
            self.block(e.otherwise, column + _INDENT, equals, tail)

    def for_loop(self, e: ast.For, equals: bool, tail: int) -> None:
        column = self.lines.column
        self.lines.write(one_line.for_head(e))
        if e.body is not None:
            self.states(e.states, column)
            if one_line.body_needs_parentheses(e):
                self.lines.newline(column + _INDENT, e.body.span.start)
                self.lines.write("(")
                self.broken(e.body, True, 1)
                self.lines.write(")")
            else:
                self.block(e.body, column + _INDENT, equals, tail)
            if e.yielded is not None:
                self.lines.newline(column, e.yielded.span.start)
                self.lines.write("yield ")
                self.expression(e.yielded, ARROW, equals, tail)
        elif e.yielded is not None:
            self.lines.write(" yield")
            self.block(e.yielded, column + _INDENT, equals, tail)

    def while_loop(self, e: ast.While, equals: bool, tail: int) -> None:
        column = self.lines.column
        self.lines.write(one_line.while_head(e))
        self.states(e.states, column)
        self.block(e.body, column + _INDENT, equals, tail)

    def states(self, states: tuple[ast.State, ...], column: int) -> None:
        """`with ... do`, on the line of its loop or below it."""
        text = f" {one_line.states(states)} do"
        start = min(s.span.start for s in states)
        end = max(s.initial.span.end for s in states)
        if self.lines.fits(text) and not self.lines.holds_comment(end):
            self.lines.write(text)
            return
        self.lines.newline(column + 2 * _INDENT, start)
        if len(states) == 1:
            self.lines.write(f"with {one_line.state_head(states[0])} = ")
            self.expression(states[0].initial, tail=3)
        else:
            self.lines.write(f"with ({', '.join(map(one_line.state_head, states))}) = ")
            self.items("(", [s.initial for s in states], ")", True, tail=3)
        self.lines.write(" do")

    # ---------------------------------------------------------------- operators, calls, brackets

    def operators(self, e: ast.Binary, equals: bool, tail: int) -> None:
        """A chain of one level, each operator at the start of a line."""
        column = self.lines.column
        if e.operator in RIGHT_ASSOCIATIVE or BINARY[e.operator] == COMPARISON:
            left, right = one_line.operand_levels(e)
            self.expression(e.left, left, equals, len(e.operator) + 1)
            self.lines.newline(column + _INDENT, e.right.span.start)
            self.lines.write(f"{e.operator} ")
            self.expression(e.right, right, equals, tail)
            return
        level = BINARY[e.operator]
        chain = [e]
        while (
            isinstance(first := chain[-1].left, ast.Binary)
            and BINARY[first.operator] == level
            and not needs_parentheses(first, one_line.operand_levels(chain[-1])[0], equals)
        ):
            chain.append(first)
        self.expression(first, one_line.operand_levels(chain[-1])[0], equals)
        for index, link in enumerate(reversed(chain)):
            self.lines.newline(column, link.right.span.start)
            self.lines.write(f"{link.operator} ")
            self.expression(link.right, level + 1, equals, tail if index + 1 == len(chain) else 0)

    def arrow(self, e: ast.Arrow, tail: int) -> None:
        column = self.lines.column
        ambiguous = e.effects is not None and (isinstance(e.result, ast.Arrow) or one_line.is_extending(e.result))
        after = len(one_line.effects(e.effects)) + tail
        self.expression(e.parameter, ASSIGNMENT)
        self.lines.newline(column, e.result.span.start)
        self.lines.write("-> ")
        self.expression(e.result, ASSIGNMENT if ambiguous else ARROW, tail=after)
        self.lines.write(one_line.effects(e.effects))

    def application(self, e: ast.Apply, tail: int) -> None:
        """The function, and each argument on a line below it; a function literal as the last stays with it."""
        column = self.lines.column
        if one_line.is_tight_call(e):
            self.expression(e.function)
            self.expression(e.arguments[0], tail=tail)
            return
        *others, last = e.arguments
        if isinstance(last, ast.Lambda) and not self.lines.holds_comment(last.span.start):
            head = " ".join(flat(part, ARGUMENT) for part in (e.function, *others))
            if self.lines.fits(f"{head} ({one_line.lambda_head(last)}"):
                self.lines.write(f"{head} (")
                self.function_literal(last, column, True, tail + 1)
                self.lines.write(")")
                return
        self.expression(e.function, ARGUMENT)
        for argument in e.arguments:
            self.lines.newline(column + _INDENT, argument.span.start)
            self.expression(argument, ARGUMENT, tail=tail if argument is last else 0)

    def items(self, opener: str, items: Sequence[ast.Expr], closer: str, equals: bool, tail: int) -> None:
        """Items in brackets: numbers and names fill lines, others have one each."""
        filled = all(isinstance(item, _ATOMS) for item in items)
        self.separated(
            opener, items, closer, tail, filled,
            lambda item, after: self.expression(item, ARROW, equals, after),
            lambda item: flat(item, ARROW, equals),
        )  # fmt: skip

    def fields(self, opener: str, fields: Sequence[ast.FieldBinding], tail: int) -> None:
        def write(field: ast.FieldBinding, after: int) -> None:
            self.lines.write(f"{field.name} = ")
            self.expression(field.value, tail=after)

        self.separated(opener, fields, " }", tail, False, write, lambda field: field.name)

    def separated(
        self, opener: str, items: Sequence[N], closer: str, tail: int, filled: bool,
        write: Callable[[N, int], None], text: Callable[[N], str],
    ) -> None:  # fmt: skip
        """Items with commas between, aligned after the opener."""
        lines = self.lines
        lines.write(opener)
        column = lines.column
        for index, item in enumerate(items):
            is_last = index + 1 == len(items)
            after = len(closer) + tail if is_last else 1
            if lines.holds_comment(item.span.start):
                lines.newline(column, item.span.start)
            elif index and filled and lines.fits(f" {text(item)}", after):
                lines.write(" ")
            elif index:
                lines.newline(column, item.span.start)
            write(item, after)
            if not is_last:
                lines.write(",")
        lines.write(closer)
