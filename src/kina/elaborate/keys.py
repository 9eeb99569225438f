"""Where draws get their keys from: `rand` as a hidden key that is split by place and never handed on.

The n-th draw, or call of a function that draws, has `fold_in key n`; step i of a loop has `fold_in loop i`, where
`loop` is the key that the loop has. So what one draw gives does not depend on any other, and loops stay parallel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kina.core.ir import Apply, Statement, Value
from kina.dims.dim import Dim
from kina.ops.creation import Constant, DimValue
from kina.ops.random import FoldIn
from kina.source import Span
from kina.types import DType, Tensor

KEY = Tensor(DType.I64, ())


@dataclass(slots=True)
class Keys:
    """The key of a block: `make` gives it when the first draw wants it; `taken` is how many draws there were."""

    make: Callable[[], Value]
    value: Value | None = None
    taken: int = 0

    @property
    def key(self) -> Value:
        if self.value is None:
            self.value = self.make()
        return self.value


Fresh = Callable[[str | None], str]


def folded(statements: list[Statement], key: Value, n: Value, fresh: Fresh, span: Span, at: int | None = None) -> Value:
    """The key for n, computed at the end of a block, or at a place in it."""
    result = Value(fresh("key"), KEY)
    statements.insert(len(statements) if at is None else at, Apply(result, FoldIn(), (key, n), span))
    return result


def number(statements: list[Statement], n: int, fresh: Fresh, span: Span) -> Value:
    result = Value(fresh("c"), KEY)
    statements.append(Apply(result, Constant(DType.I64, (), (n,)), (), span))
    return result


def next_key(statements: list[Statement], keys: Keys, fresh: Fresh, span: Span) -> Value:
    """A key for one more draw, computed at the end of a block."""
    key, taken = keys.key, keys.taken
    keys.taken += 1
    return folded(statements, key, number(statements, taken, fresh, span), fresh, span)


def keys_of_step(
    outside: Keys, before: list[Statement], inside: list[Statement], step: Dim, fresh: Fresh, span: Span
) -> Keys:
    """Keys for a block that runs once for each step: `before` is the block that the loop stands in, and `inside` begins
    with what makes the key of the step, if anything in it draws."""

    def make() -> Value:
        of_loop = next_key(before, outside, fresh, span)
        at = Value(fresh("c"), KEY)
        inside.insert(0, Apply(at, DimValue(step), (), span))
        return folded(inside, of_loop, at, fresh, span, 1)

    return Keys(make)
