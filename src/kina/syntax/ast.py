"""The surface syntax tree: what the parser builds and the printer prints.

Types, dimensions, propositions and values are all expressions here; which one a place wants is
known only later. Every node carries its span, which takes no part in equality, so that two trees
are equal when they say the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from kina.source import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    span: Span = field(compare=False, repr=False)


# ---------------------------------------------------------------- names and literals


@dataclass(frozen=True, slots=True)
class Name(Node):
    """`x`; a module member is `Field(Name("m"), "f")`."""

    text: str


@dataclass(frozen=True, slots=True)
class Number(Node):
    """A literal as it was written (`1_000`, `0xff`, `1e-6`) and its value."""

    text: str
    value: int | float


@dataclass(frozen=True, slots=True)
class String(Node):
    """`value` is the text after escapes."""

    value: str


@dataclass(frozen=True, slots=True)
class Boolean(Node):
    value: bool


@dataclass(frozen=True, slots=True)
class Hole(Node):
    """`...` (no name) or `?name`."""

    name: str | None = None


@dataclass(frozen=True, slots=True)
class Spread(Node):
    """`...S` inside a shape or a binder list."""

    name: str


# ---------------------------------------------------------------- compound values


@dataclass(frozen=True, slots=True)
class ListLiteral(Node):
    """`[a, b]` after a space: a shape, a permutation or a tensor literal."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class TupleLiteral(Node):
    """`(a, b)`, also as a type. `()` is the empty tuple; `(a)` is just `a`."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class FieldBinding(Node):
    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class RecordLiteral(Node):
    fields: tuple[FieldBinding, ...]


@dataclass(frozen=True, slots=True)
class RecordUpdate(Node):
    """`{ base with field = e }`."""

    base: Expr
    fields: tuple[FieldBinding, ...]


# ---------------------------------------------------------------- postfix forms


@dataclass(frozen=True, slots=True)
class Slice(Node):
    """`lo:hi:step`, each part optional."""

    start: Expr | None
    stop: Expr | None
    step: Expr | None


@dataclass(frozen=True, slots=True)
class NamedItem(Node):
    """`axis=2` in a tight bracket."""

    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class AxisPattern(Node):
    """The text of `einsum`/`rearrange`: `b h s d, b h t d -> b h s t`.

    Each side is a list of operands, each operand a list of axes; an axis is a name, `...`, a number
    or a parenthesised group of axes.
    """

    inputs: tuple[tuple[PatternAxis, ...], ...]
    output: tuple[PatternAxis, ...]


@dataclass(frozen=True, slots=True)
class PatternAxis(Node):
    """One axis (`names` has one entry) or a group in parentheses (`group` is true)."""

    names: tuple[str | int, ...]
    group: bool = False


@dataclass(frozen=True, slots=True)
class Bracket(Node):
    """`target[items]`, tight: attributes, dimension arguments, an index, or a type's arguments.

    A lone `...` item is `Hole(None)`; `...S` is `Spread`.
    """

    target: Expr
    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class FieldAccess(Node):
    target: Expr
    name: str


@dataclass(frozen=True, slots=True)
class Projection(Node):
    """`e.0`."""

    target: Expr
    index: int


@dataclass(frozen=True, slots=True)
class Apply(Node):
    """`f x y`; also `cdiv(a, b)`, whose argument is a tuple."""

    function: Expr
    arguments: tuple[Expr, ...]


# ---------------------------------------------------------------- operators

UnaryOperator = Literal["-", "not", "!"]
BinaryOperator = Literal[
    "|>", "||", "&&", "==", "=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "@", "mod", "div", "divides", "^", ":="
]


@dataclass(frozen=True, slots=True)
class Unary(Node):
    operator: UnaryOperator
    operand: Expr


@dataclass(frozen=True, slots=True)
class Binary(Node):
    operator: BinaryOperator
    left: Expr
    right: Expr
    operator_span: Span = field(compare=False, repr=False)


# ---------------------------------------------------------------- types


@dataclass(frozen=True, slots=True)
class Arrow(Node):
    """`A -> B ! {rand, io}`; `effects` is None where none are written."""

    parameter: Expr
    result: Expr
    effects: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Exists(Node):
    """`exists [n, m] requires (P). T`."""

    names: tuple[Binder, ...]
    requires: tuple[Expr, ...]
    body: Expr


# ---------------------------------------------------------------- binders and patterns


@dataclass(frozen=True, slots=True)
class Binder(Node):
    """`B`, `...S` (segment) or `T : Float` (dtype) in the brackets after a name."""

    name: str
    segment: bool = False
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class Parameter(Node):
    """`(x : T)`; in `fun` also a bare `x` (no type)."""

    name: str
    type: Expr | None


@dataclass(frozen=True, slots=True)
class Pattern(Node):
    """What a `let` binds: a name (`_` ignores) or a tuple of patterns."""

    name: str | None
    items: tuple[Pattern, ...] = ()


# ---------------------------------------------------------------- binding forms


@dataclass(frozen=True, slots=True)
class Let(Node):
    """`let x : T = value in body`, and `let [n] x = value in body`, which opens an existential."""

    opened: tuple[Binder, ...]
    pattern: Pattern
    type: Expr | None
    value: Expr
    body: Expr


@dataclass(frozen=True, slots=True)
class LetDim(Node):
    """`let dim R = Q_H / KV_H in body`."""

    name: str
    value: Expr
    body: Expr
    name_span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class LetAssert(Node):
    """`let assert (P) in body`."""

    proposition: Expr
    body: Expr


@dataclass(frozen=True, slots=True)
class LetAssertEq(Node):
    """`let assert_eq a b in body`."""

    left: Expr
    right: Expr
    body: Expr


@dataclass(frozen=True, slots=True)
class LetFunction(Node):
    """A local function: `let f [B] (x : T) : U = e in body`."""

    function: FunctionDeclaration
    body: Expr


@dataclass(frozen=True, slots=True)
class Lambda(Node):
    """`fun x (y : T) -> body`."""

    parameters: tuple[Parameter, ...]
    body: Expr


# ---------------------------------------------------------------- control


@dataclass(frozen=True, slots=True)
class If(Node):
    condition: Expr
    then: Expr
    otherwise: Expr


@dataclass(frozen=True, slots=True)
class State(Node):
    """`c : T = init` after `with`."""

    name: str
    type: Expr | None
    initial: Expr


@dataclass(frozen=True, slots=True)
class For(Node):
    """`for i < N with s : T = e do body yield y`. Without `with`, `body` is None and `yielded` is not."""

    index: str
    bound: Expr
    states: tuple[State, ...]
    body: Expr | None
    yielded: Expr | None


@dataclass(frozen=True, slots=True)
class While(Node):
    """`while [n < N] cond with s : T = e do body`; `index` and `bound` are None where not written."""

    index: str | None
    bound: Expr | None
    condition: Expr
    states: tuple[State, ...]
    body: Expr


Expr = (
    Name
    | Number
    | String
    | Boolean
    | Hole
    | Spread
    | ListLiteral
    | TupleLiteral
    | RecordLiteral
    | RecordUpdate
    | Slice
    | NamedItem
    | AxisPattern
    | Bracket
    | FieldAccess
    | Projection
    | Apply
    | Unary
    | Binary
    | Arrow
    | Exists
    | Let
    | LetDim
    | LetAssert
    | LetAssertEq
    | LetFunction
    | Lambda
    | If
    | For
    | While
)


# ---------------------------------------------------------------- declarations


@dataclass(frozen=True, slots=True)
class FunctionDeclaration(Node):
    """`let f [B, T : Float, ...S] requires (P) (x : A) (y : B) : R ! {rand} = body`.

    A constant has no parameters. `requires` may also stand after the parameters; the parser keeps
    all of them in order. `span` runs from `let` to the end of the body.
    """

    name: str
    binders: tuple[Binder, ...]
    requires: tuple[Expr, ...]
    parameters: tuple[Parameter, ...]
    result: Expr | None
    effects: tuple[str, ...] | None
    body: Expr
    name_span: Span = field(compare=False, repr=False)
    documentation: str = ""


@dataclass(frozen=True, slots=True)
class TypeField(Node):
    name: str
    type: Expr


@dataclass(frozen=True, slots=True)
class TypeDeclaration(Node):
    """`type Layer [D, H] = { norm : F32[D] }` (fields) or an alias (definition)."""

    name: str
    binders: tuple[Binder, ...]
    fields: tuple[TypeField, ...] | None
    definition: Expr | None
    name_span: Span = field(compare=False, repr=False)
    documentation: str = ""


@dataclass(frozen=True, slots=True)
class ImportedName(Node):
    """`softmax` or `softmax as sm` in an import list."""

    name: str
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class ImportDeclaration(Node):
    """`import std.nn (softmax)` or `import "path.kina" as m`. `names` is None where there is no list."""

    path: str
    quoted: bool
    alias: str | None
    names: tuple[ImportedName, ...] | None


@dataclass(frozen=True, slots=True)
class TestDeclaration(Node):
    """`test "name" = e`."""

    name: str
    body: Expr
    documentation: str = ""


Declaration = FunctionDeclaration | TypeDeclaration | ImportDeclaration | TestDeclaration


@dataclass(frozen=True, slots=True)
class Comment(Node):
    """`text` as written, with its `//` or `/* */`."""

    text: str


@dataclass(frozen=True, slots=True)
class Module(Node):
    """A file. Comments are kept beside the tree for the printer and take no part in equality."""

    declarations: tuple[Declaration, ...]
    comments: tuple[Comment, ...] = field(default=(), compare=False, repr=False)
