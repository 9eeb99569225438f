"""Random syntax trees: whatever the grammar can say, and nothing else."""

from __future__ import annotations

from hypothesis import strategies as st

from kina.source import Source, Span
from kina.syntax import ast
from kina.syntax.lexer import RESERVED
from kina.syntax.literals import number_value
from kina.syntax.operators import BINARY

NOWHERE = Span(Source("nowhere", ""), 0, 0)
_CONTEXTUAL = {"assert", "assert_eq", "as", "einsum", "rearrange"}


def node(kind, *arguments, **named):
    return st.builds(kind, *arguments, span=st.just(NOWHERE), **named)


def tuples(items, minimum=0, maximum=3):
    return st.lists(items, min_size=minimum, max_size=maximum).map(tuple)


words = st.one_of(
    st.sampled_from(["x", "y", "weights", "N", "Q_H", "k'", "_", "min", "cdiv", "größe", "мир", "x1"]),
    st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_']{0,5}", fullmatch=True),
).filter(lambda word: word not in RESERVED | _CONTEXTUAL)
numbers = st.sampled_from(["0", "1", "12", "1_000", "0xff", "1e-6", "0.5", "2.5e3", "7"])
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)

names = node(ast.Name, words)
literals = st.one_of(
    numbers.flatmap(lambda text: node(ast.Number, st.just(text), st.just(number_value(text)))),
    node(ast.String, texts),
    node(ast.Boolean, st.booleans()),
    node(ast.Hole, st.none() | st.sampled_from(["hole", "h2"])),
    node(ast.Spread, words),
)
binders = node(ast.Binder, words, st.booleans(), st.none() | words)
patterns = st.recursive(
    node(ast.Pattern, words),
    lambda inner: node(ast.Pattern, st.none(), st.just(()) | tuples(inner, 2)),
    max_leaves=4,
)
axes = st.one_of(
    (words | st.integers(0, 9) | st.just("...")).flatmap(lambda axis: node(ast.PatternAxis, st.just((axis,)))),
    node(ast.PatternAxis, tuples(words | st.integers(0, 9)), st.just(True)),
)
axis_patterns = node(ast.AxisPattern, tuples(tuples(axes), 1), tuples(axes))
effects = st.none() | tuples(st.sampled_from(["rand", "io", "state"]))


def parameters(types):
    return node(ast.Parameter, words, st.none() | types)


def functions(inner):
    return st.builds(
        ast.FunctionDeclaration,
        name=words,
        binders=tuples(binders),
        requires=tuples(inner, maximum=2),
        parameters=tuples(parameters(inner), 1),
        result=st.none() | inner,
        effects=effects,
        body=inner,
        name_span=st.just(NOWHERE),
        span=st.just(NOWHERE),
    )


def compound(inner):
    """Expressions with `inner` as their parts."""
    fields = tuples(node(ast.FieldBinding, words, inner))
    items = st.one_of(
        inner,
        node(ast.NamedItem, words, inner),
        node(ast.Slice, st.none() | inner, st.none() | inner, st.none() | inner),
    )
    states = tuples(node(ast.State, words, st.none() | inner, inner), 1)
    calls = node(ast.Apply, inner.filter(lambda e: not _is_patterned(e)), tuples(inner, 1))
    return st.one_of(
        node(ast.ListLiteral, tuples(inner)),
        node(ast.TupleLiteral, tuples(inner)),
        node(ast.RecordLiteral, fields),
        node(ast.RecordUpdate, inner, fields),
        node(ast.Bracket, inner, tuples(items)),
        node(ast.Bracket, node(ast.Name, st.just("einsum")), axis_patterns.map(lambda pattern: (pattern,))),
        node(ast.FieldAccess, inner, words),
        node(ast.Projection, inner, st.integers(0, 12)),
        calls,
        node(ast.Unary, st.sampled_from(["-", "not", "!"]), inner),
        node(ast.Binary, st.sampled_from(sorted(BINARY)), inner, inner, operator_span=st.just(NOWHERE)),
        node(ast.Binary, st.sampled_from(sorted(BINARY)), inner, inner, operator_span=st.just(NOWHERE)),
        node(ast.Arrow, inner, inner, effects),
        node(ast.Exists, tuples(binders), tuples(inner, maximum=2), inner),
        node(ast.Let, st.just(()) | tuples(binders, 1), patterns, st.none() | inner, inner, inner),
        node(ast.LetDim, words, inner, inner, name_span=st.just(NOWHERE)),
        node(ast.LetAssert, inner, inner),
        node(ast.LetAssertEq, inner, inner, inner),
        node(ast.LetFunction, functions(inner), inner),
        node(ast.Lambda, tuples(parameters(inner), 1), inner),
        node(ast.If, inner, inner, inner),
        node(ast.For, words, inner, states, inner, st.none() | inner),
        node(ast.For, words, inner, st.just(()), st.none(), inner),
        node(ast.While, words, inner, inner, states, inner),
        node(ast.While, st.none(), st.none(), inner, states, inner),
    )


def _is_patterned(e):
    """A call of a call is one call, in this grammar, where the inner one has no parentheses."""
    return isinstance(e, ast.Bracket) and isinstance(e.target, ast.Name) and e.target.text == "einsum"


expressions = st.recursive(names | literals, compound, max_leaves=12)

lines = st.text(st.characters(exclude_categories=["C", "Z"]), max_size=12)
documentation = st.just("") | st.lists(lines, min_size=1, max_size=3).map("\n".join).filter(lambda t: bool(t.strip()))

declarations = st.one_of(
    st.builds(
        ast.FunctionDeclaration,
        name=words, binders=tuples(binders), requires=tuples(expressions, maximum=1),
        parameters=tuples(parameters(expressions)), result=st.none() | expressions, effects=effects, body=expressions,
        name_span=st.just(NOWHERE), documentation=documentation, span=st.just(NOWHERE),
    ),
    st.builds(
        ast.TypeDeclaration,
        name=words, binders=tuples(binders), fields=tuples(node(ast.TypeField, words, expressions)),
        definition=st.none(), name_span=st.just(NOWHERE), documentation=documentation, span=st.just(NOWHERE),
    ),
    node(ast.ImportDeclaration, words, st.just(False), st.none() | words,
         st.none() | tuples(node(ast.ImportedName, words, st.none() | words))),
    node(ast.ImportDeclaration, texts, st.just(True), st.none() | words, st.none()),
    node(ast.TestDeclaration, texts, expressions, documentation),
)  # fmt: skip
modules = tuples(declarations, maximum=3)
