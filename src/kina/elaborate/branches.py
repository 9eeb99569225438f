"""`if` on a scalar or on a proposition over dimensions."""

from __future__ import annotations

from collections.abc import Mapping

from kina.core.ir import Block, If, Statement, Tree, Value, leaves, tree_type
from kina.diagnostics.diagnostic import Edit, Help
from kina.dims.proposition import And, Proposition, negate
from kina.elaborate.context import Cell, Context, Meaning
from kina.elaborate.dimensions import conjuncts, read_claim
from kina.elaborate.dispatch import check, elaborates, tensor, value
from kina.elaborate.guesses import guess, parenthesised
from kina.elaborate.matching import conform
from kina.elaborate.refs import leaves_of
from kina.elaborate.trees import confine, is_settled, new_tree
from kina.syntax import ast
from kina.types import DType, Tensor, Type

_BOOL = Tensor(DType.BOOL, ())


@elaborates(ast.If)
def _if(context: Context, e: ast.If, expected: Type | None, name: str | None) -> Meaning:
    condition = _condition(context, e)
    wanted = expected if expected is not None and is_settled(expected) else None
    mark = len(context.opened)
    with context.block() as statements:
        if not isinstance(condition, Value):
            context.assume(*conjuncts(condition))
        first = _branch(context, e.then, wanted)
        then, after_then = statements, context.cells
    result_type = wanted or tree_type(first)
    confine(context, result_type, mark, e.then.span, "a branch")
    with context.block() as statements:
        if not isinstance(condition, Value):
            context.assume(*conjuncts(negate(condition)))
        what = "what stands after `else`" if wanted is None else "this branch"
        second = check(context, e.otherwise, result_type, what, e.then.span if wanted is None else None)
        otherwise, after_otherwise = statements, context.cells
    changed = [c for c, held in context.cells.items() if not after_then[c] is after_otherwise[c] is held]
    result = new_tree(context, result_type, None if changed else name)
    alone = len(changed) == 1 and not any(leaves(result))
    joined = {cell: new_tree(context, cell.type, cell.name if alone else None) for cell in changed}
    context.cells.update(joined)

    def block(made: list[Statement], tree: Tree, cells: Mapping[Cell, Tree]) -> Block:
        return Block(tuple(made), leaves_of((tree, *(cells[cell] for cell in changed))))

    blocks = block(then, first, after_then), block(otherwise, second, after_otherwise)
    context.statements.append(If(leaves_of((result, *joined.values())), condition, *blocks, e.span))
    return result


def _branch(context: Context, e: ast.Expr, wanted: Type | None) -> Tree:
    return value(context, e) if wanted is None else check(context, e, wanted, "this branch", None)


def _condition(context: Context, whole: ast.If) -> Value | Proposition:
    e = whole.condition
    if is_proposition(context, e):
        return And.of(read_claim(context, e))
    condition = tensor(context, e, _BOOL)
    conform(context, condition, _BOOL, e.span, "the condition of `if`", None, help=_element_by_element(whole))
    return condition


def _element_by_element(e: ast.If) -> tuple[Help, ...]:
    """`if` chooses once, `select` for each element."""
    parts = (e.condition, e.then, e.otherwise)
    text = " ".join(["select", *(parenthesised(part.span) for part in parts)])
    return (guess("`select` chooses for each element", Edit(e.span, f"({text})")),)


def is_proposition(context: Context, e: ast.Expr) -> bool:
    """Whether an expression compares dimensions, as opposed to values."""
    match e:
        case ast.Binary(operator="&&" | "||", left=left, right=right):
            return is_proposition(context, left) and is_proposition(context, right)
        case ast.Unary(operator="not", operand=operand):
            return is_proposition(context, operand)
        case ast.Binary(operator="==" | "=" | "!=" | "<" | "<=" | ">" | ">=" | "divides", left=left, right=right):
            return is_dimension(context, left) and is_dimension(context, right)
    return False


def is_dimension(context: Context, e: ast.Expr) -> bool:
    """Whether an expression is built from dimensions and whole numbers alone."""
    match e:
        case ast.Name(text=name):
            return name in context.dims and name not in context.values
        case ast.Number(value=number):
            return isinstance(number, int)
        case ast.Unary(operator="-", operand=operand):
            return is_dimension(context, operand)
        case ast.Binary(operator="+" | "-" | "*" | "/" | "div" | "mod", left=left, right=right):
            return is_dimension(context, left) and is_dimension(context, right)
        case ast.Apply(function=ast.Name(text="cdiv" | "min" | "max"), arguments=arguments):
            items = [i for a in arguments for i in (a.items if isinstance(a, ast.TupleLiteral) else (a,))]
            return all(is_dimension(context, item) for item in items)
    return False
