"""Generic functions: `...S` and `T : Float` are put for what a call needs, and each case is checked as a function.

A declaration is checked for segments of 0, 1, 2 and 3 axes and for dtypes that stand for their class, so that a
mistake is found where it is; every use is then checked again at its own ranks and dtypes, so that nothing is
ever run that was not proved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from kina.elaborate.context import ModuleContext
from kina.ops.base import DTypeClass
from kina.syntax import ast
from kina.types import DType, List, Record, Tensor, Tuple, Type, map_tensors

_RANKS = (2, 0, 1, 3)
"""Axes of a segment for which a declaration is checked; the first one is the case that is shown."""
_STAND_INS: Mapping[str, tuple[DType, ...]] = {
    "Float": (DType.F32, DType.F16, DType.F64),
    "Int": (DType.I64, DType.U8, DType.I8),
    "Num": (DType.F32, DType.I64, DType.F16, DType.U8),
    "Bool": (DType.BOOL,),
    "Any": (DType.F32, DType.I64, DType.BOOL, DType.F16, DType.U8),
    "Weight": (DType.F32, DType.Q4_1, DType.F16),
}
"""Dtypes that stand for a class: type rules ask only for a dtype's class, whether two are the same, and which literals
it holds."""
CLASSES = tuple(_STAND_INS)


@dataclass(frozen=True, slots=True)
class Choice:
    """What is put for the binders of a generic function."""

    dtypes: tuple[tuple[str, DType], ...]
    ranks: tuple[tuple[str, int], ...]

    @property
    def text(self) -> str:
        """`T = F16, ...S of 2 axes`."""
        parts = [f"{name} = {dtype}" for name, dtype in self.dtypes]
        parts += [f"...{name} of {rank} {'axis' if rank == 1 else 'axes'}" for name, rank in self.ranks]
        return ", ".join(parts)

    @property
    def suffix(self) -> str:
        """What tells this case's name from others'."""
        return "".join(f"_{dtype}" for _, dtype in self.dtypes) + "".join(f"_{rank}" for _, rank in self.ranks)


NOT_GENERIC = Choice((), ())


def is_generic(declaration: ast.FunctionDeclaration) -> bool:
    return any(binder.segment or binder.kind is not None for binder in declaration.binders)


def stand_ins(declaration: ast.FunctionDeclaration) -> list[Choice]:
    """The cases for which a declaration is checked. One binder varies at a time, the others keep their first."""
    dtypes = {b.name: _STAND_INS[b.kind] for b in declaration.binders if b.kind is not None and b.kind in _STAND_INS}
    ranks = {b.name: _RANKS for b in declaration.binders if b.segment}
    first = Choice(tuple((n, d[0]) for n, d in dtypes.items()), tuple((n, r[0]) for n, r in ranks.items()))
    found = [first]
    for name, options in dtypes.items():
        found += [replace(first, dtypes=_with(first.dtypes, name, option)) for option in options[1:]]
    for name in ranks:
        found += [replace(first, ranks=_with(first.ranks, name, rank)) for rank in _RANKS[1:]]
    return found


Put = TypeVar("Put")


def _with(pairs: tuple[tuple[str, Put], ...], name: str, value: Put) -> tuple[tuple[str, Put], ...]:
    return tuple((n, value if n == name else old) for n, old in pairs)


def admits(kind: str, dtype: DType) -> bool:
    """Whether a dtype is in a class of binders."""
    return DTypeClass(kind).holds(dtype)


@dataclass(slots=True)
class Matching:
    """What the types of arguments say of a generic function's binders."""

    home: ModuleContext
    declaration: ast.FunctionDeclaration
    dtypes: dict[str, DType] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)

    def choice(self) -> Choice | None:
        """What is put for the binders, or None where something is open still."""
        binders = self.declaration.binders
        if any(b.kind is not None and b.name not in self.dtypes for b in binders):
            return None
        if any(b.segment and b.name not in self.ranks for b in binders):
            return None
        dtypes = tuple((b.name, self.dtypes[b.name]) for b in binders if b.kind is not None)
        return Choice(dtypes, tuple((b.name, self.ranks[b.name]) for b in binders if b.segment))

    def open(self) -> list[str]:
        """The binders that nothing has said anything of."""
        return [
            b.name if b.kind else f"...{b.name}"
            for b in self.declaration.binders
            if (b.kind is not None and b.name not in self.dtypes) or (b.segment and b.name not in self.ranks)
        ]

    def match(self, e: ast.Expr, type_: Type, meant: Mapping[str, ast.Expr] | None = None) -> None:
        """Lays a parameter's type, as it is written, beside an argument's. What does not fit is found later.

        `meant` says what an alias's binders stand for while its definition is looked at.
        """
        meant = meant or {}
        match e, type_:
            case ast.Bracket(target=ast.Name(text="Tensor"), items=(element, ast.ListLiteral(items=items))), Tensor():
                self._tensor(element, items, type_, meant)
            case ast.TupleLiteral(items=items), Tuple(types):
                for item, inner in zip(items, types, strict=False):
                    self.match(item, inner, meant)
            case ast.Bracket(target=ast.Name(text="List"), items=(_, item)), _:
                self._item(item, type_, meant)
            case ast.Bracket(target=ast.Name() | ast.FieldAccess() as target, items=items), _:
                self._named(target, items, type_, meant)
            case ((ast.Name() | ast.FieldAccess()), _):
                self._named(e, (), type_, meant)

    def _item(self, item: ast.Expr, type_: Type, meant: Mapping[str, ast.Expr]) -> None:
        """A list's item beside a list, a row of items (from Python), or what has the list's axis in front."""
        match type_:
            case List(_, inner):
                self.match(item, inner, meant)
            case Tuple(items) if items:
                self.match(item, items[0], meant)
            case _:
                self.match(item, map_tensors(type_, lambda tensor: tensor.with_shape(tensor.shape[1:])), meant)

    def _named(
        self,
        target: ast.Name | ast.FieldAccess,
        items: tuple[ast.Expr, ...],
        type_: Type,
        meant: Mapping[str, ast.Expr],
    ) -> None:
        found = self.home.find_type(target)
        if found is None:
            if isinstance(type_, Tensor):
                self._tensor(target, items, type_, meant)
            return
        _, declaration = found
        given = {b.name: _put(item, meant) for b, item in zip(declaration.binders, items, strict=False)}
        if declaration.definition is not None:
            self.match(declaration.definition, type_, given)
        elif isinstance(type_, Record):
            for field_ in declaration.fields or ():
                inner = type_.field(field_.name)
                if inner is not None:
                    self.match(field_.type, inner, given)

    def _tensor(
        self, element: ast.Expr, items: tuple[ast.Expr, ...], type_: Tensor, meant: Mapping[str, ast.Expr]
    ) -> None:
        self._element(_put(element, meant), type_.dtype)
        self._axes(items, type_.rank, meant)

    def _element(self, e: ast.Expr, dtype: DType) -> None:
        if isinstance(e, ast.Name) and any(b.kind is not None and b.name == e.text for b in self.declaration.binders):
            self.dtypes.setdefault(e.text, dtype)

    def _axes(self, items: Iterable[ast.Expr], rank: int, meant: Mapping[str, ast.Expr]) -> None:
        """A segment takes the axes that are left over."""
        put = [p for item in items for p in _spliced(item, meant)]
        segments = [item.name for item in put if isinstance(item, ast.Spread)]
        if len(segments) == 1:
            self.ranks.setdefault(segments[0], max(0, rank - len(put) + 1))


def _put(e: ast.Expr, meant: Mapping[str, ast.Expr]) -> ast.Expr:
    return meant.get(e.text, e) if isinstance(e, ast.Name) else e


def _spliced(item: ast.Expr, meant: Mapping[str, ast.Expr]) -> tuple[ast.Expr, ...]:
    """What stands in a shape for an item: of an alias's `...S`, all that was given for it."""
    if isinstance(item, ast.Spread) and item.name in meant:
        given = meant[item.name]
        return given.items if isinstance(given, ast.ListLiteral) else (given,)
    return (item,)
