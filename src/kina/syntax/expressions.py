"""Expressions: operators by precedence, application, postfix forms and atoms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import cast

from kina.diagnostics import syntax_errors
from kina.source import Span
from kina.syntax import ast
from kina.syntax.cursor import MAX_DEPTH, Cursor
from kina.syntax.lexer import RESERVED
from kina.syntax.literals import number_problem, number_value, string_value
from kina.syntax.operators import (
    ARROW,
    BINARY,
    COMPARISON,
    COMPARISONS,
    EXTENDING,
    NOT,
    POWER,
    RIGHT_ASSOCIATIVE,
)

_LEVEL: dict[str, int] = {"->": ARROW, **{str(operator): level for operator, level in BINARY.items()}}
_PREFIXES = EXTENDING | {"-", "not"}
_ARGUMENT_STARTS = frozenset({"name", "number", "string", "(", "[", "{", "true", "false", "hole", "...", "!"})
_POSTFIXES = frozenset({"[", "(", ".", "projection"})
_LONGEST_CHAIN = 1000
_PATTERN_OPERATIONS = frozenset({"einsum", "rearrange"})


class ExpressionParser(Cursor, ABC):
    """Precedence climbing; each method reads one form and stands after it."""

    @abstractmethod
    def extending_form(self, kind: str) -> ast.Expr:
        """Reads `let`, `fun`, `if`, `for`, `while` or `exists`."""

    @abstractmethod
    def effects(self) -> tuple[str, ...] | None:
        """Reads `! {rand}`, if it is there."""

    # ---------------------------------------------------------------- operators

    def expression(self) -> ast.Expr:
        return self.operators(ARROW)

    def comparing(self) -> ast.Expr:
        """An expression in which `=` compares."""
        outer, self.equals = self.equals, True
        result = self.operators(ARROW)
        self.equals = outer
        return result

    def naming(self) -> ast.Expr:
        """An expression that a `=` ends."""
        outer, self.equals = self.equals, False
        result = self.operators(ARROW)
        self.equals = outer
        return result

    def operators(self, minimum: int) -> ast.Expr:
        """An expression of operators that bind at least as tightly as `minimum`."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(syntax_errors.nested_too_deeply(self.token_span(self.position), MAX_DEPTH))
        start = self.starts[self.position]
        kind = self.kinds[self.position]
        left = self.prefixed(kind, minimum) if kind in _PREFIXES else self.application()
        length = 0
        while (level := _LEVEL.get(kind := self.kinds[self.position], -1)) >= minimum:
            if kind == "=" and not self.equals:
                break
            index = self.position
            self.position += 1
            if kind == "->":
                result = self.operators(ARROW)
                effects = self.effects()
                left = ast.Arrow(left, result, effects, span=self.span(start))
                continue
            right = self.operators(level if kind in RIGHT_ASSOCIATIVE else level + 1)
            operator = cast(ast.BinaryOperator, kind)
            left = ast.Binary(operator, left, right, self.token_span(index), span=self.span(start))
            if level == COMPARISON:
                self.refuse_chain(index)
            length += 1
            if length > _LONGEST_CHAIN:
                self.fail(syntax_errors.nested_too_deeply(self.token_span(index), _LONGEST_CHAIN))
        self.depth -= 1
        return left

    def prefixed(self, kind: str, minimum: int) -> ast.Expr:
        """`-e`, `not e`, or a form that reaches as far as it can."""
        index = self.position
        if kind in EXTENDING:
            return self.extending_form(kind)
        self.position += 1
        if kind == "-":
            operand = self.operators(POWER)
            return ast.Unary("-", operand, span=self.span(self.starts[index]))
        operand = self.operators(NOT)
        if minimum > NOT:
            self.report(syntax_errors.loose_not(self.token_span(index), self.span(self.starts[index + 1])))
        return ast.Unary("not", operand, span=self.span(self.starts[index]))

    def refuse_chain(self, first: int) -> None:
        """After `a < b`: another comparison is an error."""
        kind = self.kinds[self.position]
        if kind in COMPARISONS and (kind != "=" or self.equals):
            between = " ".join(self.text[self.ends[first] : self.ends[self.position - 1]].split())
            second = self.token_span(self.position)
            self.fail(syntax_errors.chained_comparison(self.token_span(first), second, between))

    # ---------------------------------------------------------------- application

    def application(self) -> ast.Expr:
        """`f x y`. A parenthesis that touches the name before it binds as tightly as an index."""
        start = self.starts[self.position]
        function = self.postfix()
        if self.kinds[self.position] not in _ARGUMENT_STARTS:
            return function
        arguments: list[ast.Expr] = []
        while (kind := self.kinds[self.position]) in _ARGUMENT_STARTS:
            if kind == "!" and self.kinds[self.position + 1] == "{":
                break
            if kind == "[" and isinstance(function, ast.Name) and not arguments:
                self.refuse_spaced_pattern(function)
            arguments.append(self.postfix())
        return self.applied(function, tuple(arguments), start) if arguments else function

    def applied(self, function: ast.Expr, arguments: tuple[ast.Expr, ...], start: int) -> ast.Expr:
        """`f(x) y` says what `f x y` says; `(f x) y` stays as it is."""
        if isinstance(function, ast.Apply) and function.span.start == start:
            return ast.Apply(function.function, function.arguments + arguments, span=self.span(start))
        return ast.Apply(function, arguments, span=self.span(start))

    def postfix(self) -> ast.Expr:
        """An atom with its `[...]`, `.field`, `.0` and tight `(...)`."""
        start = self.starts[self.position]
        target = self.atom()
        length = 0
        while (kind := self.kinds[self.position]) in _POSTFIXES:
            index = self.position
            if kind == ".":
                self.position += 1
                if self.kinds[self.position] in RESERVED:
                    self.kinds[self.position] = "name"  # after a point every word is a name
                target = ast.FieldAccess(target, self.name("the name of a field"), span=self.span(start))
            elif self.starts[index] != self.ends[index - 1]:
                break
            elif kind == "[":
                target = self.bracket(target, start)
            elif kind == "(":
                target = self.applied(target, (self.parentheses(),), start)
            else:
                self.position += 1
                target = ast.Projection(target, self.place(index), span=self.span(start))
            length += 1
            if length > _LONGEST_CHAIN:
                self.fail(syntax_errors.nested_too_deeply(self.token_span(index), _LONGEST_CHAIN))
        return target

    def place(self, index: int) -> int:
        """The number of a projection such as `.0`."""
        digits = self.token_text(index)[1:]
        return int(digits) if digits.isdecimal() and len(digits) < 9 else 0

    # ---------------------------------------------------------------- tight brackets

    def bracket(self, target: ast.Expr, start: int) -> ast.Expr:
        """`target[...]`: attributes, dimension arguments, an index, or the arguments of a type."""
        opener = self.position
        self.position += 1
        outer, self.equals = self.equals, False
        items: list[ast.Expr] = []
        if not self.take("]"):
            last = target.text if isinstance(target, ast.Name) else getattr(target, "name", "")
            items.append(self.pattern() if last in _PATTERN_OPERATIONS else self.bracket_item())
            while self.separated("]", opener):
                items.append(self.bracket_item())
        self.equals = outer
        return ast.Bracket(target, tuple(items), span=self.span(start))

    def bracket_item(self) -> ast.Expr:
        """`e`, `name=e` or a slice."""
        start = self.starts[self.position]
        kind = self.kinds[self.position]
        if self.kinds[self.position + 1] == "=" and (kind == "name" or kind in RESERVED):
            name = self.token_text(self.position)
            self.position += 2
            return ast.NamedItem(name, self.expression(), span=self.span(start))
        first = None if kind == ":" else self.expression()
        if self.kinds[self.position] != ":":
            assert first is not None
            return first
        parts: list[ast.Expr | None] = [first]
        while len(parts) < 3 and self.take(":"):
            parts.append(None if self.kinds[self.position] in (":", ",", "]") else self.expression())
        parts += [None] * (3 - len(parts))
        return ast.Slice(*parts, span=self.span(start))

    def pattern(self) -> ast.AxisPattern:
        """`b h s d, b h t d -> b h s t`."""
        start = self.starts[self.position]
        inputs = [self.operand_axes()]
        while self.take(","):
            inputs.append(self.operand_axes())
        self.need("->")
        return ast.AxisPattern(tuple(inputs), self.operand_axes(), span=self.span(start))

    def operand_axes(self) -> tuple[ast.PatternAxis, ...]:
        axes = []
        while (kind := self.kinds[self.position]) in ("name", "number", "...", "("):
            start = self.starts[self.position]
            opener = self.position
            if kind != "(":
                axes.append(ast.PatternAxis((self.axis(),), span=self.span(start)))
                continue
            self.position += 1
            names = []
            while self.kinds[self.position] in ("name", "number", "..."):
                names.append(self.axis())
            self.close(")", opener)
            axes.append(ast.PatternAxis(tuple(names), True, span=self.span(start)))
        return tuple(axes)

    def axis(self) -> str | int:
        """One axis: a name, a size, or `...`."""
        text = self.token_text(self.position)
        is_number = self.kinds[self.position] == "number"
        self.position += 1
        if not is_number:
            return text
        size = number_value(text)
        if not isinstance(size, int):
            self.position -= 1
            self.unexpected("the name of an axis or a whole number")
        return size

    def refuse_spaced_pattern(self, function: ast.Name) -> None:
        """`einsum [i j -> j i]`: the bracket would be a list, which holds no patterns."""
        if function.text in _PATTERN_OPERATIONS:
            self.spaced_bracket("an axis pattern")

    def spaced_bracket(self, what: str, opener: int | None = None) -> None:
        index = self.position if opener is None else opener
        space = Span(self.source, self.ends[index - 1], self.starts[index])
        function = self.token_span(index - 2) if index > 1 and self.kinds[index - 2] == "name" else None
        self.fail(syntax_errors.spaced_bracket(self.token_span(index), space, what, function))

    # ---------------------------------------------------------------- atoms

    def atom(self) -> ast.Expr:
        index = self.position
        kind = self.kinds[index]
        if kind in ("name", "number"):
            self.position += 1
            start, end = self.starts[index], self.ends[index]
            text = self.text[start:end]
            span = Span(self.source, start, end)
            if kind == "name":
                return ast.Name(text, span=span)
            if not text.isdecimal() and number_problem(text):
                return ast.Hole("", span=span)  # the lexer has reported it
            return ast.Number(text, number_value(text), span=span)
        if kind == "(":
            return self.parentheses()
        if kind == "[":
            return self.list_literal()
        if kind == "{":
            return self.record()
        return self.small_atom(kind)

    def small_atom(self, kind: str) -> ast.Expr:
        """`"text"`, `true`, `false`, `...`, `...S`, `?name`, `!r`."""
        index = self.position
        self.position += 1
        span = self.token_span(index)
        if kind == "string":
            return ast.String(string_value(self.token_text(index)), span=span)
        if kind in ("true", "false"):
            return ast.Boolean(kind == "true", span=span)
        if kind == "hole":
            return ast.Hole(self.token_text(index)[1:], span=span)
        if kind == "...":
            if self.kinds[self.position] == "name" and self.is_tight():
                self.position += 1
                return ast.Spread(self.token_text(index + 1), span=self.span(span.start))
            return ast.Hole(None, span=span)
        if kind == "!":
            self.enter()
            operand = self.postfix()
            self.depth -= 1
            return ast.Unary("!", operand, span=self.span(span.start))
        self.position = index
        return self.unexpected("an expression")

    def parentheses(self) -> ast.Expr:
        """`(e)`, `(a, b)` or `()`. Inside, `=` compares."""
        opener = self.position
        self.position += 1
        if self.take(")"):
            return ast.TupleLiteral((), span=self.span(self.starts[opener]))
        outer, self.equals = self.equals, True
        first = self.operators(ARROW)
        if self.kinds[self.position] == ")":
            self.position += 1
            self.equals = outer
            return first
        items = [first]
        while self.separated(")", opener):
            items.append(self.operators(ARROW))
        self.equals = outer
        return ast.TupleLiteral(tuple(items), span=self.span(self.starts[opener]))

    def list_literal(self) -> ast.Expr:
        opener = self.position
        self.position += 1
        outer, self.equals = self.equals, False
        items: list[ast.Expr] = []
        if not self.take("]"):
            items.append(self.list_item(opener))
            while self.separated("]", opener):
                items.append(self.list_item(opener))
        self.equals = outer
        return ast.ListLiteral(tuple(items), span=self.span(self.starts[opener]))

    def list_item(self, opener: int) -> ast.Expr:
        """An item; what only a tight bracket may hold is an error that says so."""
        item = None if self.kinds[self.position] == ":" else self.operators(ARROW)
        kind = self.kinds[self.position]
        follows_name = opener > 0 and self.kinds[opener - 1] in ("name", "]", ")")
        if follows_name and kind == ":":
            self.spaced_bracket("a slice", opener)
        if follows_name and kind == "=" and isinstance(item, ast.Name):
            self.spaced_bracket("an attribute", opener)
        if item is None:
            self.unexpected("an expression")
        return item

    def record(self) -> ast.Expr:
        """`{ field = e, ... }` or `{ base with field = e, ... }`."""
        opener = self.position
        self.position += 1
        start = self.starts[opener]
        outer, self.equals = self.equals, False
        base: ast.Expr | None = None
        if self.kinds[self.position] != "}" and self.kinds[self.position + 1] not in ("=", ":"):
            base = self.expression()
            if self.kinds[self.position] in (",", "}"):
                self.unexpected("`=` and the field's value", after=None)
            self.need("with")
        fields: list[ast.FieldBinding] = []
        if not self.take("}"):
            fields.append(self.field_binding())
            while self.separated("}", opener):
                fields.append(self.field_binding())
        self.equals = outer
        if base is None:
            return ast.RecordLiteral(tuple(fields), span=self.span(start))
        return ast.RecordUpdate(base, tuple(fields), span=self.span(start))

    def field_binding(self) -> ast.FieldBinding:
        start = self.starts[self.position]
        name = self.name("the name of a field")
        self.need("=", instead=":")
        return ast.FieldBinding(name, self.expression(), span=self.span(start))
