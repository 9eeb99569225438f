"""Tokens -> tree. (Provisional.)"""
from __future__ import annotations

from dataclasses import dataclass

from kina.diagnostics import Diagnostic, Severity
from kina.source import Source, Span
from kina.syntax import ast
from kina.syntax.lexer import Token, lex


@dataclass(frozen=True, slots=True)
class ParseResult:
    module: ast.Module
    diagnostics: tuple[Diagnostic, ...]

class Fail(Exception):
    pass

BINARY = {":=": 0, "|>": 1, "||": 2, "&&": 3, "==": 5, "=": 5, "!=": 5, "<": 5, "<=": 5, ">": 5, ">=": 5, "divides": 5,
          "+": 6, "-": 6, "*": 7, "/": 7, "@": 7, "mod": 7, "div": 7}

class Parser:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.tokens, comments, errors = lex(source)
        self.comments = tuple(ast.Comment(c[2], span=self.span(c[0], c[1])) for c in comments)
        self.diagnostics = [Diagnostic("K0101", Severity.ERROR, m, self.span(a, b)) for a, b, m in errors]
        self.at, self.limit, self.eq = 0, 1, False
        self.END = Token("end", "", 0, 0, True, 0)

    def span(self, a: int, b: int) -> Span:
        return Span(self.source, a, b)
    @property
    def tok(self) -> Token:
        t = self.tokens[self.at]
        return self.END if t.column <= self.limit else t
    @property
    def pos(self) -> int: return self.tokens[self.at].start
    def done(self, start: int) -> Span:
        return self.span(start, max(start, self.tokens[self.at - 1].end))
    def fail(self, wanted: str) -> Fail:
        t = self.tokens[self.at]
        self.diagnostics.append(Diagnostic("K0102", Severity.ERROR, f"expected {wanted}, found {t.text or 'the end'}", self.span(t.start, t.end)))
        return Fail()
    def next(self) -> Token:
        t = self.tok
        self.at += 1
        return t
    def take(self, kind: str) -> bool:
        if self.tok.kind == kind:
            self.at += 1
            return True
        return False
    def need(self, kind: str) -> Token:
        if self.tok.kind != kind: raise self.fail(f"`{kind}`")
        return self.next()
    def name(self) -> Token: return self.need("name")

    # declarations
    def module(self) -> ParseResult:
        out = []
        while self.tokens[self.at].kind != "end":
            self.limit = 0
            try:
                out.append(self.declaration())
                self.limit = 1
                if self.tok.kind != "end": raise self.fail("the end of the declaration")
            except Fail:
                self.at += self.tokens[self.at].kind != "end"
                while self.tokens[self.at].kind != "end" and self.tokens[self.at].column != 1: self.at += 1
        return ParseResult(ast.Module(tuple(out), self.comments, span=self.span(0, len(self.source.text))), tuple(self.diagnostics))
    def declaration(self):
        t = self.next(); start = t.start; self.limit = 1
        doc = self.doc(start)
        if t.kind == "let": return self.function(start, doc)
        if t.kind == "type":
            n = self.name(); b = self.binders(); self.need("=")
            if self.take("{"):
                fields = []
                while not self.take("}"):
                    f = self.name(); self.need(":"); fields.append(ast.TypeField(f.text, self.type(), span=self.done(f.start)))
                    if not self.take(","): self.need("}"); break
                return ast.TypeDeclaration(n.text, b, tuple(fields), None, self.span(n.start, n.end), doc, span=self.done(start))
            return ast.TypeDeclaration(n.text, b, None, self.type(), self.span(n.start, n.end), doc, span=self.done(start))
        if t.kind == "import":
            if self.tok.kind == "string": path, quoted = self.next().text[1:-1], True
            else:
                path, quoted = self.name().text, False
                while self.take("."): path += "." + self.name().text
            names = alias = None
            if self.take("("):
                names = []
                while not self.take(")"):
                    n = self.name(); a = self.name().text if self.tok.text == "as" and self.next() else None
                    names.append(ast.ImportedName(n.text, a, span=self.done(n.start)))
                    if not self.take(","): self.need(")"); break
            if self.tok.text == "as": self.next(); alias = self.name().text
            return ast.ImportDeclaration(path, quoted, alias, None if names is None else tuple(names), span=self.done(start))
        if t.kind == "test":
            s = self.need("string"); self.need("=")
            return ast.TestDeclaration(s.text[1:-1], self.expr(), doc, span=self.done(start))
        self.at -= 1
        raise self.fail("a declaration (let, type, import or test)")
    def doc(self, start):
        lines, line = [], self.source.line_of(start) - 1
        by_line = {c.span.line: c for c in self.comments if c.text.startswith("///")}
        while line in by_line: lines.insert(0, by_line[line].text[3:].strip()); line -= 1
        return "\n".join(lines)
    def binders(self):
        out = []
        if self.take("["):
            while not self.take("]"):
                s = self.pos; seg = self.take("..."); n = self.name(); kind = self.name().text if self.take(":") else None
                out.append(ast.Binder(n.text, seg, kind, span=self.done(s)))
                if not self.take(","): self.need("]"); break
        return tuple(out)
    def function(self, start, doc=""):
        n = self.name(); b = self.binders(); req, params = [], []
        while True:
            if self.take("requires"): req.append(self.parens())
            elif self.tok.kind == "(":
                s = self.next().start; p = self.name(); self.need(":"); t = self.type(); self.need(")")
                params.append(ast.Parameter(p.text, t, span=self.done(s)))
            else: break
        result = self.type() if self.take(":") else None
        effects = self.effects()
        while self.take("requires"): req.append(self.parens())
        self.need("=")
        return ast.FunctionDeclaration(n.text, b, tuple(req), tuple(params), result, effects, self.expr(), self.span(n.start, n.end), doc, span=self.done(start))
    def effects(self):
        if not self.take("!"): return None
        self.need("{"); out = []
        while not self.take("}"):
            out.append(self.name().text)
            if not self.take(","): self.need("}"); break
        return tuple(out)
    def parens(self):
        self.need("("); old, self.eq = self.eq, True
        e = self.expr(); self.eq = old; self.need(")")
        return e

    # types
    def type(self):
        s = self.pos
        if self.take("exists"):
            names = self.binders(); req = []
            while self.take("requires"): req.append(self.parens())
            self.need(".")
            return ast.Exists(names, tuple(req), self.type(), span=self.done(s))
        t = self.postfix()
        if self.take("->"):
            r = self.type(); return ast.Arrow(t, r, self.effects(), span=self.done(s))
        return t

    # expressions
    def expr(self, level: int = 0):
        s = self.pos; e = self.prefix(level)
        while True:
            op = self.tok.kind; p = BINARY.get(op)
            if p is None or p < level or (op == "=" and not self.eq): return e
            t = self.next()
            right = self.expr(p if op == ":=" else p + 1)
            e = ast.Binary(op, e, right, self.span(t.start, t.end), span=self.done(s))
            if p == 5 and BINARY.get(self.tok.kind) == 5 and (self.tok.kind != "=" or self.eq): raise self.fail("`&&` between comparisons")
    def prefix(self, level):
        t = self.tok; s = self.pos
        if t.kind == "not" and level <= 4:
            self.next(); return ast.Unary("not", self.expr(4), span=self.done(s))
        if t.kind == "-":
            self.next(); return ast.Unary("-", self.expr(8), span=self.done(s))
        if t.kind in ("let", "fun", "if", "for", "while"): return getattr(self, "p_" + t.kind)()
        base = self.application()
        if self.tok.kind == "^":
            o = self.next(); return ast.Binary("^", base, self.prefix(9), self.span(o.start, o.end), span=self.done(s))
        return base
    STARTS = frozenset(["name", "number", "string", "(", "[", "{", "...", "?", "true", "false", "!"])
    def application(self):
        s = self.pos; f = self.postfix(); args = []
        while self.tok.kind in self.STARTS: args.append(self.postfix())
        return ast.Apply(f, tuple(args), span=self.done(s)) if args else f
    def postfix(self):
        s = self.pos; e = self.atom()
        while True:
            t = self.tok
            if t.kind == "[" and not t.spaced: e = self.bracket(e, s)
            elif t.kind == "." and not t.spaced:
                self.next()
                if self.tok.kind == "number": e = ast.Projection(e, int(self.next().text), span=self.done(s))
                else: e = ast.FieldAccess(e, self.name().text, span=self.done(s))
            else: return e
    def bracket(self, e, s):
        self.next(); old, self.eq = self.eq, False; items = []
        pattern = isinstance(e, ast.Name) and e.text in ("einsum", "rearrange")
        while not self.take("]"):
            if pattern and not items: items.append(self.pattern_())
            else: items.append(self.item())
            if not self.take(","): self.need("]"); break
        self.eq = old
        return ast.Bracket(e, tuple(items), span=self.done(s))
    def pattern_(self):
        s = self.pos; ins = [self.axes()]
        while self.take(","): ins.append(self.axes())
        self.need("->")
        return ast.AxisPattern(tuple(ins), self.axes(), span=self.done(s))
    def axes(self):
        out = []
        while self.tok.kind in ("name", "number", "(", "..."):
            t = self.next()
            if t.kind == "(":
                g = []
                while not self.take(")"): g.append(self.name().text)
                out.append(ast.PatternAxis(tuple(g), True, span=self.done(t.start)))
            else: out.append(ast.PatternAxis((t.text,), span=self.done(t.start)))
        return tuple(out)
    def item(self):
        s = self.pos
        if self.tok.kind == "name" and self.tokens[self.at + 1].kind == "=":
            n = self.next(); self.next(); return ast.NamedItem(n.text, self.expr(), span=self.done(s))
        first = None if self.tok.kind == ":" else self.expr()
        if self.tok.kind != ":": return first
        parts = [first]
        while self.take(":"): parts.append(None if self.tok.kind in (":", ",", "]") else self.expr())
        return ast.Slice(*(parts + [None])[:3], span=self.done(s))
    def atom(self):
        t = self.tok; s = self.pos
        sp = self.span(t.start, t.end)
        if t.kind == "name": self.next(); return ast.Name(t.text, span=sp)
        if t.kind == "number":
            self.next(); x = t.text.replace("_", "")
            v = int(x, 16) if x[:2].lower() == "0x" else float(x) if any(c in x for c in ".eE") else int(x)
            return ast.Number(t.text, v, span=sp)
        if t.kind == "string": self.next(); return ast.String(t.text[1:-1], span=sp)
        if t.kind in ("true", "false"): self.next(); return ast.Boolean(t.kind == "true", span=sp)
        if t.kind == "?": self.next(); return ast.Hole(self.name().text, span=self.done(s))
        if t.kind == "!": self.next(); return ast.Unary("!", self.postfix(), span=self.done(s))
        if t.kind == "...":
            self.next()
            if self.tok.kind == "name" and not self.tok.spaced: return ast.Spread(self.next().text, span=self.done(s))
            return ast.Hole(None, span=sp)
        if t.kind == "(":
            self.next(); old, self.eq = self.eq, True; items = []
            comma = False
            while not self.take(")"):
                items.append(self.typed())
                comma = self.take(",")
                if not comma: self.need(")"); break
            self.eq = old
            return items[0] if len(items) == 1 and not comma else ast.TupleLiteral(tuple(items), span=self.done(s))
        if t.kind == "[":
            self.next(); old, self.eq = self.eq, False; items = []
            while not self.take("]"):
                items.append(self.expr())
                if not self.take(","): self.need("]"); break
            self.eq = old
            return ast.ListLiteral(tuple(items), span=self.done(s))
        if t.kind == "{":
            self.next(); base = None
            if self.tokens[self.at + 1].kind != "=": base = self.postfix(); self.need("with")
            fields = []; old, self.eq = self.eq, False
            while not self.take("}"):
                n = self.name(); self.need("="); fields.append(ast.FieldBinding(n.text, self.expr(), span=self.done(n.start)))
                if not self.take(","): self.need("}"); break
            self.eq = old
            return ast.RecordUpdate(base, tuple(fields), span=self.done(s)) if base else ast.RecordLiteral(tuple(fields), span=self.done(s))
        raise self.fail("an expression")
    def typed(self):
        if self.tok.kind == "exists": return self.type()
        s = self.pos; e = self.expr()
        if self.take("->"):
            r = self.type(); return ast.Arrow(e, r, self.effects(), span=self.done(s))
        return e
    def p_let(self):
        column = self.pos - self.source.line_starts[self.source.line_of(self.pos) - 1] + 1
        s = self.next().start; limit, self.limit = self.limit, max(self.limit, column); eq, self.eq = self.eq, False
        kind = self.tok.text; make = None; nxt = self.tokens[self.at + 1].kind
        if kind == "dim":
            self.next(); n = self.name(); self.need("="); v = self.expr()
            make = lambda b: ast.LetDim(n.text, v, b, self.span(n.start, n.end), span=self.done(s))
        elif kind == "assert" and nxt == "(":
            self.next(); p = self.parens(); make = lambda b: ast.LetAssert(p, b, span=self.done(s))
        elif kind == "assert_eq":
            self.next(); a = self.postfix(); c = self.postfix(); make = lambda b: ast.LetAssertEq(a, c, b, span=self.done(s))
        elif self.tok.kind == "name" and nxt in ("[", "(", "requires"):
            f = self.function(s); make = lambda b: ast.LetFunction(f, b, span=self.done(s))
        else:
            opened = self.binders(); p = self.let_pattern(); t = self.type() if self.take(":") else None
            self.need("="); v = self.expr(); make = lambda b: ast.Let(opened, p, t, v, b, span=self.done(s))
        self.limit = limit; self.eq = eq
        self.take("in")
        return make(self.expr())
    def let_pattern(self):
        s = self.pos
        if self.take("("):
            items = [self.let_pattern()]
            while self.take(","): items.append(self.let_pattern())
            self.need(")")
            return ast.Pattern(None, tuple(items), span=self.done(s))
        return ast.Pattern(self.name().text, span=self.done(s))
    def p_fun(self):
        s = self.next().start; ps = []
        while not self.take("->"):
            q = self.pos
            if self.take("("):
                n = self.name(); self.need(":"); t = self.type(); self.need(")")
                ps.append(ast.Parameter(n.text, t, span=self.done(q)))
            else: ps.append(ast.Parameter(self.name().text, None, span=self.done(q)))
        return ast.Lambda(tuple(ps), self.expr(), span=self.done(s))
    def cond(self):
        old, self.eq = self.eq, True; e = self.expr(); self.eq = old
        return e
    def p_if(self):
        s = self.next().start; c = self.cond(); self.need("then"); a = self.expr(); self.need("else")
        return ast.If(c, a, self.expr(), span=self.done(s))
    def states(self):
        if self.tok.kind == "(":
            self.next(); heads = []
            while not self.take(")"):
                n = self.name(); heads.append((n, self.type() if self.take(":") else None))
                if not self.take(","): self.need(")"); break
            self.need("="); init = self.expr()
            items = init.items if isinstance(init, ast.TupleLiteral) else (init,)
            if len(items) != len(heads): raise self.fail("as many initial values as states")
            return tuple(ast.State(n.text, t, i, span=self.span(n.start, n.end)) for (n, t), i in zip(heads, items))
        n = self.name(); t = self.type() if self.take(":") else None; self.need("=")
        return (ast.State(n.text, t, self.expr(), span=self.done(n.start)),)
    def p_for(self):
        s = self.next().start; i = self.name().text; self.need("<"); bound = self.expr(6); st = (); body = y = None
        if self.take("with"): st = self.states(); self.need("do"); body = self.expr()
        if self.take("yield"): y = self.expr()
        return ast.For(i, bound, st, body, y, span=self.done(s))
    def p_while(self):
        s = self.next().start; i = b = None
        if self.take("["):
            i = self.name().text; self.need("<"); b = self.expr(6); self.need("]")
        c = self.cond(); self.need("with"); st = self.states(); self.need("do")
        return ast.While(i, b, c, st, self.expr(), span=self.done(s))

def parse(source: Source) -> ParseResult:
    return Parser(source).module()
