"""Forms with keywords: `let`, `fun`, `if`, `for`, `while`, `exists`, and the signatures of functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from kina.diagnostics import syntax_errors
from kina.diagnostics.diagnostic import Edit, Help, Label
from kina.source import Span
from kina.syntax import ast
from kina.syntax.cursor import Failure
from kina.syntax.expressions import ExpressionParser
from kina.syntax.layout import CLOSERS
from kina.syntax.operators import SUM

_NO_BODY = frozenset({"end", "eof", "in", *CLOSERS})


@dataclass(frozen=True, slots=True)
class Signature:
    """What stands between a function's name and its `=`."""

    binders: tuple[ast.Binder, ...]
    requires: tuple[ast.Expr, ...]
    parameters: tuple[ast.Parameter, ...]
    result: ast.Expr | None
    effects: tuple[str, ...] | None


class FormParser(ExpressionParser):
    def extending_form(self, kind: str) -> ast.Expr:
        match kind:
            case "let":
                return self.lets()
            case "fun":
                return self.function_literal()
            case "if":
                return self.conditional()
            case "for":
                return self.for_loop()
            case "while":
                return self.while_loop()
            case _:
                return self.existential()

    def broken(self, start: int) -> ast.Expr:
        """Stands for what did not parse, so that the rest can be looked at: a hole with an empty name."""
        return ast.Hole("", span=self.span(start))

    # ---------------------------------------------------------------- let

    def lets(self) -> ast.Expr:
        """A run of lets, read in a loop, since functions have hundreds."""
        bindings: list[tuple[int, Callable[..., ast.Expr]]] = []
        let = self.position
        while self.kinds[self.position] == "let":
            let = self.position
            bindings.append((self.starts[let], self.binding()))
        if self.kinds[self.position] in _NO_BODY:
            here = self.token_span(self.position)
            self.fail(syntax_errors.let_without_body(self.token_span(let), here, self.found()))
        body = self.expression()
        for start, bind in reversed(bindings):
            body = bind(body=body, span=self.span(start))
        return body

    def binding(self) -> Callable[..., ast.Expr]:
        """From `let` through `in`: the node, but for its body. After an error, goes on at the next line."""
        let = self.position
        outer, depth = self.equals, self.depth
        self.position += 1
        self.equals = False
        bind: Callable[..., ast.Expr] | None = None
        try:
            fallback = self.unbound(let)
            bind = self.binding_form()
            self.need_in(let)
        except Failure as failure:
            if not self.skip_binding(let):
                raise
            self.report(failure.diagnostic)
            self.depth = depth
            bind = bind or partial(fallback, value=self.broken(self.starts[let]))
            self.position += 1
        self.equals = outer
        return bind

    def unbound(self, let: int) -> Callable[..., ast.Expr]:
        """What a `let` binds if the rest of it is broken: as many names as can be seen."""
        index = let + 1
        if self.kinds[index] == "dim" and self.kinds[index + 1] == "name":
            return partial(ast.LetDim, self.token_text(index + 1), name_span=self.token_span(index + 1))
        if self.kinds[index] not in ("(", "["):
            name = self.token_text(index) if self.kinds[index] == "name" else "_"
            return partial(ast.Let, (), ast.Pattern(name, span=self.token_span(index)), None)
        seen: list[Callable[..., ast.Expr]] = []
        sizes = False
        while self.kinds[index] not in ("=", ":", "in", "let", "end", "eof"):
            sizes = self.kinds[index] == "[" or (sizes and self.kinds[index] != "]")
            if self.kinds[index] == "name":
                text, span = self.token_text(index), self.token_span(index)
                one = partial(ast.LetDim, text, name_span=span) if sizes else None
                seen.append(one or partial(ast.Let, (), ast.Pattern(text, span=span), None))
            index += 1
        return partial(_each, seen)

    def need_in(self, let: int) -> None:
        if not self.take("in"):
            here = self.token_span(self.position)
            if self.kinds[self.position] in _NO_BODY or self.kinds[self.position] == "let":
                self.fail(syntax_errors.let_without_body(self.token_span(let), here, self.found()))
            self.unexpected("`in`", after=Label(self.token_span(let), "for this `let`"))

    def skip_binding(self, let: int) -> bool:
        """Goes to the `in` before the next line at or left of a `let`, if there is one."""
        start = self.starts[let]
        column = start - self.text.rfind("\n", 0, start)
        index = max(self.position, let + 1)
        while self.kinds[index] not in ("end", "eof"):
            if 0 < self.columns[index] <= column and self.kinds[index - 1] == "in":
                self.position = index - 1
                return True
            index += 1
        return False

    def binding_form(self) -> Callable[..., ast.Expr]:
        start = self.starts[self.position - 1]
        kind = self.kinds[self.position]
        if kind == "dim":
            return self.dimension_binding()
        word = self.token_text(self.position) if kind == "name" else ""
        following = self.kinds[self.position + 1]
        if word == "assert" and following == "(":
            self.position += 1
            return partial(ast.LetAssert, self.proposition())
        if word == "assert_eq" and following not in ("=", ":"):
            self.position += 1
            return partial(ast.LetAssertEq, self.postfix(), self.postfix())
        if word and following not in ("=", ":", "in"):
            return self.function_binding(start)
        opened = self.binders() if kind == "[" else ()
        pattern = self.opened_pattern() if opened else self.let_pattern()
        annotation = self.naming() if self.take(":") else None
        effects = self.effects() if annotation is not None else None
        self.need("=")
        value = self.naming()
        if effects is not None and pattern.name is not None and not opened:
            function = ast.FunctionDeclaration(
                pattern.name, (), (), (), annotation, effects, value, pattern.span, span=self.span(start)
            )
            return partial(ast.LetFunction, function)
        return partial(ast.Let, opened, pattern, annotation, value)

    def dimension_binding(self) -> Callable[..., ast.Expr]:
        self.position += 1
        name = self.name("the name of a dimension")
        name_span = self.token_span(self.position - 1)
        self.need("=", instead=":")
        return partial(ast.LetDim, name, self.naming(), name_span=name_span)

    def function_binding(self, start: int) -> Callable[..., ast.Expr]:
        name = self.name("the name of a function")
        name_span = self.token_span(self.position - 1)
        signature = self.signature()
        self.need("=")
        function = self.function(name, name_span, signature, self.naming(), start)
        return partial(ast.LetFunction, function)

    def function(
        self, name: str, name_span: Span, s: Signature, body: ast.Expr, start: int, documentation: str = ""
    ) -> ast.FunctionDeclaration:
        return ast.FunctionDeclaration(
            name, s.binders, s.requires, s.parameters, s.result, s.effects, body, name_span, documentation,
            span=self.span(start),
        )  # fmt: skip

    def opened_pattern(self) -> ast.Pattern:
        """The pattern after the dimensions of an opened existential; `let [n] = e` binds only those."""
        if self.kinds[self.position] != "=":
            return self.let_pattern()
        here = self.starts[self.position]
        return ast.Pattern("_", span=Span(self.source, here, here))

    def let_pattern(self) -> ast.Pattern:
        """A name, or patterns in parentheses."""
        start, opener = self.starts[self.position], self.position
        if not self.take("("):
            return ast.Pattern(self.name("a name"), span=self.span(start))
        if self.take(")"):
            return ast.Pattern(None, (), span=self.span(start))
        items = [self.nested_pattern()]
        if self.take(")"):
            return items[0]
        while self.separated(")", opener):
            items.append(self.nested_pattern())
        return ast.Pattern(None, tuple(items), span=self.span(start))

    def nested_pattern(self) -> ast.Pattern:
        self.enter()
        pattern = self.let_pattern()
        self.depth -= 1
        return pattern

    # ---------------------------------------------------------------- signatures

    def signature(self) -> Signature:
        """`[B, S] requires (P) (x : A) : R ! {rand}`; `requires` may stand before, between and after."""
        binders = self.binders() if self.kinds[self.position] == "[" else ()
        requires: list[ast.Expr] = []
        parameters: list[ast.Parameter] = []
        while (kind := self.kinds[self.position]) in ("requires", "(", "name"):
            if kind == "requires":
                requires.append(self.requirement())
            else:
                parameters.append(self.parameter())
        result = self.naming() if self.take(":") else None
        effects = self.effects()
        while self.kinds[self.position] == "requires":
            requires.append(self.requirement())
        return Signature(binders, tuple(requires), tuple(parameters), result, effects)

    def binders(self) -> tuple[ast.Binder, ...]:
        """`[B, ...S, T : Float]`."""
        opener = self.need("[")
        if self.take("]"):
            return ()
        binders = [self.binder()]
        while self.separated("]", opener):
            binders.append(self.binder())
        return tuple(binders)

    def binder(self) -> ast.Binder:
        start = self.starts[self.position]
        segment = self.take("...")
        name = self.name("the name of a dimension")
        kind = self.name("the class of a dtype, such as `Float`") if self.take(":") else None
        return ast.Binder(name, segment, kind, span=self.span(start))

    def requirement(self) -> ast.Expr:
        self.position += 1
        return self.proposition()

    def proposition(self) -> ast.Expr:
        """`(P)`."""
        if self.kinds[self.position] in ("name", "number", "not"):
            advice = Help("a proposition stands in parentheses, as in `requires (N > 0)`")
            self.unexpected("`(`", help=[advice])
        opener = self.need("(")
        claim = self.comparing()
        self.close(")", opener)
        return claim

    def parameter(self) -> ast.Parameter:
        """`(x : T)`, or a bare `x`."""
        opener, start = self.position, self.starts[self.position]
        if not self.take("("):
            return ast.Parameter(self.name("the name of a parameter"), None, span=self.span(start))
        name = self.name("the name of a parameter")
        annotation = self.naming() if self.take(":") else None
        if self.kinds[self.position] != ")" and annotation is None:
            edits = (Edit(self.token_span(self.position), ":"),) if self.kinds[self.position] == "=" else ()
            self.unexpected("`:` and the parameter's type", help=[Help("`(x : F32[N])` is a parameter", edits)])
        self.close(")", opener)
        return ast.Parameter(name, annotation, span=self.span(start))

    def effects(self) -> tuple[str, ...] | None:
        """`! {rand, io}`, or None."""
        if self.kinds[self.position] != "!":
            return None
        self.position += 1
        opener = self.need("{")
        if self.take("}"):
            return ()
        names = [self.name("the name of an effect")]
        while self.separated("}", opener):
            names.append(self.name("the name of an effect"))
        return tuple(names)

    # ---------------------------------------------------------------- the other forms

    def function_literal(self) -> ast.Expr:
        start = self.starts[self.position]
        self.position += 1
        parameters = [self.parameter()]
        while self.kinds[self.position] in ("(", "name"):
            parameters.append(self.parameter())
        self.need("->", instead=":")
        return ast.Lambda(tuple(parameters), self.expression(), span=self.span(start))

    def existential(self) -> ast.Expr:
        start = self.starts[self.position]
        self.position += 1
        names = self.binders()
        requires = []
        while self.kinds[self.position] == "requires":
            requires.append(self.requirement())
        self.need(".", instead="->")
        return ast.Exists(names, tuple(requires), self.expression(), span=self.span(start))

    def conditional(self) -> ast.Expr:
        index = self.position
        self.position += 1
        condition = self.comparing()
        self.need("then", Label(self.token_span(index), "for this `if`"), instead=":")
        then = self.expression()
        if not self.take("else"):
            here, opened = self.token_span(self.position), self.token_span(index)
            if self.kinds[self.position] in _NO_BODY:
                self.fail(syntax_errors.missing_else(here, opened, self.found()))
            self.unexpected("`else`", after=Label(opened, "for this `if`"))
        return ast.If(condition, then, self.expression(), span=self.span(self.starts[index]))

    def for_loop(self) -> ast.Expr:
        index = self.position
        loop = self.token_span(index)
        self.position += 1
        name, bound = self.counter()
        states: tuple[ast.State, ...] = ()
        body = yielded = None
        if self.take("with"):
            states = self.states()
            self.need("do", Label(loop, "for this `for`"), instead=":")
            body = self.expression()
        elif self.kinds[self.position] != "yield":
            self.fail(syntax_errors.loop_without_result(self.token_span(self.position), loop))
        if self.take("yield"):
            yielded = self.expression()
        return ast.For(name, bound, states, body, yielded, span=self.span(self.starts[index]))

    def while_loop(self) -> ast.Expr:
        index = self.position
        self.position += 1
        name = bound = None
        opener = self.position
        if self.take("["):
            name, bound = self.counter()
            self.close("]", opener)
        condition = self.comparing()
        self.need("with", Label(self.token_span(index), "for this `while`"))
        states = self.states()
        self.need("do", Label(self.token_span(index), "for this `while`"), instead=":")
        body = self.expression()
        return ast.While(name, bound, condition, states, body, span=self.span(self.starts[index]))

    def counter(self) -> tuple[str, ast.Expr]:
        """`i < N`."""
        name = self.name("the name of a counter")
        self.need("<", instead="in")
        outer, self.equals = self.equals, False
        bound = self.operators(SUM)
        self.equals = outer
        return name, bound

    def states(self) -> tuple[ast.State, ...]:
        """`s : T = e`, or `(s : T, t : U) = (e, f)`."""
        start, opener = self.starts[self.position], self.position
        if not self.take("("):
            name, annotation = self.state_head()
            self.need("=")
            return (ast.State(name, annotation, self.naming(), span=self.span(start)),)
        heads: list[tuple[str, ast.Expr | None, Span]] = []
        while True:
            at = self.starts[self.position]
            heads.append((*self.state_head(), self.span(at)))
            if not self.separated(")", opener):
                break
        self.need("=")
        at = self.starts[self.position]
        initial = self.naming()
        values = (initial,) if len(heads) == 1 else initial.items if isinstance(initial, ast.TupleLiteral) else None
        if values is None or len(values) != len(heads):
            count = None if values is None else len(values)
            self.fail(syntax_errors.initial_values(self.span(at), len(heads), count))
        return tuple(ast.State(n, t, v, span=s) for (n, t, s), v in zip(heads, values, strict=True))

    def state_head(self) -> tuple[str, ast.Expr | None]:
        name = self.name("the name of a state")
        return name, self.naming() if self.take(":") else None


def _each(seen: list[Callable[..., ast.Expr]], value: ast.Expr, body: ast.Expr, span: Span) -> ast.Expr:
    """Bindings of one value to several names, one after the other."""
    for bind in reversed(seen):
        body = bind(value=value, body=body, span=span)
    return body
