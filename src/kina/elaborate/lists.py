"""`[a + b, 0.0]`: a list of computed values is sugar for `stack`."""

from __future__ import annotations

from kina.core.ir import Value
from kina.diagnostics import form_errors
from kina.elaborate.context import Context
from kina.elaborate.dispatch import tensor
from kina.elaborate.literals import adapts, dtype_of
from kina.elaborate.operations import operate
from kina.syntax import ast
from kina.types import Tensor


def stacked_list(context: Context, e: ast.ListLiteral, wanted: Tensor | None, name: str | None) -> Value:
    """The items, tensors of one type, along a new first axis. Literals among them take the dtype of the others."""
    if context.home.strict:
        items = " ".join(item.span.text for item in e.items)
        raise context.report(form_errors.sugar(e.span, "a list of computed values", f"stack[axis=0] {items}"))
    hint = dtype_of(wanted)
    values: dict[int, Value] = {}
    for n in sorted(range(len(e.items)), key=lambda n: adapts(context, e.items[n])):
        values[n] = tensor(context, e.items[n], hint)
        if hint is None:
            hint = dtype_of(values[n].type)
    operands = tuple(values[n] for n in range(len(e.items)))
    return operate(context, "stack", {"axis": 0}, "a list", e.span, operands, tuple(i.span for i in e.items), name)
