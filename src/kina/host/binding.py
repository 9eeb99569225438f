"""Weights bound to a record by name: which tensor of a file each field is, and all that does not fit, said at once.

A field's path is its names joined by dots, the items of a list by number: `layers.3.attn_q`. The file's tensor of that
name is taken, or that name with `.weight` behind; `names` says otherwise where the file calls things differently.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from kina.diagnostics import KinaError
from kina.dims.dim import Dim, UndefinedSize
from kina.elaborate.record_forms import RecordForm
from kina.host.sizes import Solve, make_plan
from kina.host.weight_faults import Fault, Kind, does_not_fit, open_sizes
from kina.host.weight_file import Stored, WeightFile
from kina.ops.base import Array
from kina.types import DType, List, Record, Tensor, Tuple, Type, shape_text

Renaming = Mapping[str, str] | Callable[[str], str]
"""What a file calls the fields: by path or the front of one, `*` for an item's number, or a function of the path."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A tensor of the record, and the sizes of the lists that it stands in, the outermost first."""

    path: tuple[str, ...]
    tensor: Tensor
    lists: tuple[Dim, ...] = ()
    binder: str | None = None
    """The dtype binder that it is stored as, if it is one."""

    def name(self, numbers: Sequence[int]) -> str:
        """`layers.3.attn_q`."""
        left = iter(numbers)
        return ".".join(str(next(left)) if part == "*" else part for part in self.path)


@dataclass(frozen=True, slots=True)
class Item:
    """One tensor that the record wants: a leaf at its place in lists, and what the file calls it, if it has it."""

    leaf: Leaf
    numbers: tuple[int, ...]
    wanted: str
    found: str | None


@dataclass(slots=True)
class Binding:
    """A record laid beside a file. Raises KinaError from `bound` with every fault that there is."""

    form: RecordForm
    file: WeightFile
    names: Renaming
    convert: bool
    sizes: dict[str, int]
    dtypes: dict[str, DType]
    ignored: Callable[[str], bool]
    faults: list[Fault] = field(default_factory=list)
    counted: dict[Dim, int] = field(default_factory=dict)
    """How many items were found of the lists of each length."""
    converted: dict[tuple[str, DType], Array] = field(default_factory=dict)
    tensors: Mapping[str, Stored] = field(init=False)
    record: Record = field(init=False)

    def __post_init__(self) -> None:
        self.tensors = self.file.tensors
        self.record = self.form.type(dict.fromkeys(self.form.dtypes, DType.F32))

    def bound(self) -> dict[str, object]:
        """The record's value: a dictionary for each record, a tuple for each tuple, the tensors of lists in one."""
        leaves = self._leaves()
        items = [item for leaf in leaves for item in self._items(leaf, leaves)]
        self._settle_sizes(items)
        self._settle_dtypes(items)
        self._missing_and_extra(items)
        self._settled(leaves, items)
        if self.faults:
            raise does_not_fit(self.file.path, self.form, self.faults)
        return self._record(self.record, (), {leaf.path: self._value(leaf, items) for leaf in leaves})

    # ------------------------------------------------------------ what the record wants

    def _leaves(self) -> list[Leaf]:
        """The tensors of the record. Which are stored as a binder shows where another dtype is put for it."""
        plain = list(_leaves_of(self.record))
        binders: dict[tuple[str, ...], str] = {}
        for name in self.form.dtypes:
            others = dict.fromkeys(self.form.dtypes, DType.F32) | {name: DType.F16}
            changed = zip(plain, _leaves_of(self.form.type(others)), strict=True)
            binders |= {a.path: name for a, b in changed if a.tensor.dtype is not b.tensor.dtype}
        return [Leaf(leaf.path, leaf.tensor, leaf.lists, binders.get(leaf.path)) for leaf in plain]

    def _items(self, leaf: Leaf, leaves: Sequence[Leaf]) -> Iterator[Item]:
        for numbers in self._places(leaf, leaves):
            wanted = self._renamed(leaf, numbers)
            yield Item(leaf, numbers, wanted, self._found(wanted))

    def _places(self, leaf: Leaf, leaves: Sequence[Leaf]) -> Iterator[tuple[int, ...]]:
        """The numbers of all items of the lists around a leaf: what is there of any field says how many there are."""
        places: list[tuple[int, ...]] = [()]
        stars = [n for n, part in enumerate(leaf.path) if part == "*"]
        for depth, (star, size) in enumerate(zip(stars, leaf.lists, strict=True)):
            beside = [other for other in leaves if other.path[: star + 1] == leaf.path[: star + 1]]
            count = self._count(beside, depth, size)
            places = [(*place, n) for place in places for n in range(count)]
        return iter(places)

    def _count(self, beside: Sequence[Leaf], depth: int, size: Dim) -> int:
        """How many items a list has: told by the caller, else as many as the file has without a gap."""
        most, count = len(self.tensors), 0
        if size.variables <= self.sizes.keys():
            count = min(size.evaluate(self.sizes), most + 1)
        else:
            while count <= most and any(self._has(leaf, depth, count) for leaf in beside):
                count += 1
        if str(size) in self.form.sizes:
            self.sizes.setdefault(str(size), count)
        self.counted[size] = count
        return count

    def _has(self, leaf: Leaf, depth: int, number: int) -> bool:
        """Whether the file has the item of that number, looked for in the first items of the other lists."""
        numbers = [number if n == depth else 0 for n in range(len(leaf.lists))]
        return self._found(self._renamed(leaf, numbers)) is not None

    def _renamed(self, leaf: Leaf, numbers: Sequence[int]) -> str:
        if callable(self.names):
            return self.names(leaf.name(numbers))
        for end in range(len(leaf.path), 0, -1):
            front = ".".join(leaf.path[:end])
            if front in self.names:
                left = [str(n) for n in numbers]
                pattern = ".".join([self.names[front], *leaf.path[end:]])
                return ".".join(left.pop(0) if part == "*" and left else part for part in pattern.split("."))
        return leaf.name(numbers)

    def _found(self, wanted: str) -> str | None:
        return next((name for name in (wanted, f"{wanted}.weight") if name in self.tensors), None)

    # ------------------------------------------------------------ what does not fit

    def _missing_and_extra(self, items: Sequence[Item]) -> None:
        used = {item.found for item in items}
        extra = [name for name in self.tensors if name not in used and not self.ignored(name)]
        missing = [item for item in items if item.found is None]
        for item in missing:
            self._fault(Kind.MISSING, item, near=(item.wanted, extra or self.tensors))
        for name in extra:
            shape = f"{self.tensors[name].format}{list(self.tensors[name].shape)}"
            near = (name, [item.wanted for item in missing or items])
            self.faults.append(Fault(Kind.EXTRA, name, got=shape, near=near))

    def _settle_sizes(self, items: Sequence[Item]) -> None:
        """Sizes read off the shapes: of a name what most tensors say, so that one that is wrong is the one named."""
        there = [(item, self.tensors[item.found]) for item in items if item.found is not None]
        ranked = [(item, stored) for item, stored in there if len(stored.shape) == item.leaf.tensor.rank]
        votes: dict[str, Counter[int]] = {}
        for item, stored in ranked:
            for dim, size in zip(item.leaf.tensor.shape, stored.shape, strict=True):
                if str(dim) in self.form.sizes and str(dim) not in self.sizes:
                    votes.setdefault(str(dim), Counter())[size] += 1
        self.sizes |= {name: counted.most_common(1)[0][0] for name, counted in votes.items()}
        self._solve(ranked)
        for item, stored in there:
            if len(stored.shape) != item.leaf.tensor.rank or not self._agrees(item.leaf.tensor, stored.shape):
                self._fault(Kind.SHAPE, item, got=f"{list(stored.shape)}")

    def _settled(self, leaves: Sequence[Leaf], items: Sequence[Item]) -> None:
        """Whether every size is known, and lists are as long as their types say."""
        if not self.faults and (left := self._open(leaves)):
            raise open_sizes(self.file.path, self.form, left, self._enough([item.leaf.tensor for item in items], left))
        for dim, count in self.counted.items():
            if dim.variables <= self.sizes.keys() and (said := dim.evaluate(self.sizes)) != count:
                name = f"a list of {dim} items"
                self.faults.append(Fault(Kind.SHAPE, name, wanted=str(dim), which=str(said), got=f"{count} items"))

    def _open(self, leaves: Sequence[Leaf]) -> list[str]:
        """Sizes of the record's tensors and lists that nothing has said."""
        named = {name for leaf in leaves for dim in (*leaf.tensor.shape, *leaf.lists) for name in dim.variables}
        return [name for name in self.form.sizes if name in named and name not in self.sizes]

    def _enough(self, tensors: Sequence[Tensor], left: Sequence[str]) -> list[str]:
        """Of the sizes that are open, some that settle all others."""
        names: list[str] = []
        while missing := [n for n in make_plan(self.form.sizes, tensors, {*self.sizes, *names}).missing if n in left]:
            names.append(missing[0])
        return names

    def _solve(self, there: Sequence[tuple[Item, Stored]]) -> None:
        """Sizes inside compound dimensions, `H * E` with E known, one unknown at a time."""
        plan = make_plan(self.form.sizes, [item.leaf.tensor for item, _ in there], self.sizes)
        for step in plan.steps:
            if isinstance(step, Solve) and step.name not in self.sizes:
                item, stored = there[step.place.input]
                size = self._solution(step, stored.shape[step.place.axis])
                if size is None:
                    self._fault(Kind.SHAPE, item, got=f"{list(stored.shape)}")
                    return
                self.sizes[step.name] = size

    def _solution(self, step: Solve, size: int) -> int | None:
        try:
            factor, rest = step.coefficient.evaluate(self.sizes), size - step.rest.evaluate(self.sizes)
        except UndefinedSize:
            return None
        found, left = divmod(rest, factor) if factor else (-1, 0)
        return found if not left and found >= 0 else None

    def _agrees(self, tensor: Tensor, shape: tuple[int, ...]) -> bool:
        """Whether a shape is the tensor's; sizes that are not known agree with all."""
        for dim, size in zip(tensor.shape, shape, strict=True):
            try:
                if dim.evaluate(self.sizes) != size:
                    return False
            except KeyError:
                continue
            except UndefinedSize:
                return False
        return True

    def _settle_dtypes(self, items: Sequence[Item]) -> None:
        """What is put for `W : Weight`: the format of all tensors that are stored as W."""
        there = [(item, self.tensors[item.found]) for item in items if item.found is not None]
        for binder in self.form.dtypes:
            formats = {stored.format: stored.dtype for item, stored in there if item.leaf.binder == binder}
            if binder in self.dtypes or not formats:
                continue
            dtype, *others = formats.values()
            if self.convert and (others or dtype is None) and self.form.admits(binder, DType.F32):
                self.dtypes[binder] = DType.F32
            elif others or dtype is None or not self.form.admits(binder, dtype):
                why = f"{binder} : {self.form.dtypes[binder]} would have to be {' and '.join(formats)}"
                self.faults.append(Fault(Kind.DTYPE, why))
            else:
                self.dtypes[binder] = dtype
        for item, stored in there:
            wanted = self._dtype(item.leaf)
            if wanted is not None and stored.dtype is not wanted and not self._converts(stored, wanted):
                self._fault(Kind.DTYPE, item, got=stored.format)

    def _dtype(self, leaf: Leaf) -> DType | None:
        return leaf.tensor.dtype if leaf.binder is None else self.dtypes.get(leaf.binder)

    def _converts(self, stored: Stored, wanted: DType) -> bool:
        """Whether `convert` may do it: from any format of numbers that is read as F32, to any float."""
        integer = stored.dtype is not None and (stored.dtype.is_integer or stored.dtype is DType.BOOL)
        return self.convert and wanted.is_float and not integer

    def _fault(self, kind: Kind, item: Item, got: str = "", near: tuple[str, object] | None = None) -> None:
        tensor, dtype = item.leaf.tensor, self._dtype(item.leaf)
        element = item.leaf.binder if dtype is None else dtype
        self.faults.append(Fault(
            kind, item.leaf.name(item.numbers), file_name=item.found or item.wanted, got=got, near=near,
            wanted=f"{element}{shape_text(tensor.shape)}", which=f"{element}{self._numbers(tensor)}",
        ))  # fmt: skip

    def _numbers(self, tensor: Tensor) -> str:
        sizes = []
        for dim in tensor.shape:
            try:
                sizes.append(str(dim.evaluate(self.sizes)))
            except (KeyError, UndefinedSize):
                sizes.append("?")
        return f"[{', '.join(sizes)}]"

    # ------------------------------------------------------------ the value

    def _value(self, leaf: Leaf, items: Sequence[Item]) -> Array:
        own = [item for item in items if item.leaf is leaf]
        arrays = [self._array(leaf, item.found) for item in own if item.found is not None]
        if not leaf.lists:
            return arrays[0]
        # What is in one now is not needed apart any more.
        self.converted = {key: array for key, array in self.converted.items() if key[0] not in {i.found for i in own}}
        lengths = [dim.evaluate(self.sizes) for dim in leaf.lists]
        if not arrays:
            dtype = self._dtype(leaf) or DType.F32
            return np.empty((*lengths, *(d.evaluate(self.sizes) for d in leaf.tensor.shape)), dtype.numpy)
        return in_one(arrays).reshape(*lengths, *arrays[0].shape)

    def _array(self, leaf: Leaf, name: str) -> Array:
        """A tensor of the file in the dtype that a leaf wants. What several fields share is converted once."""
        wanted = self._dtype(leaf)
        if wanted is None or self.tensors[name].dtype is wanted:
            return self.file.stored(name)
        if (name, wanted) not in self.converted:
            self.converted[name, wanted] = self.file.numbers(name).astype(wanted.numpy, copy=False)
        return self.converted[name, wanted]

    def _record(
        self, record: Record, path: tuple[str, ...], values: Mapping[tuple[str, ...], Array]
    ) -> dict[str, object]:
        return {name: self._tree(inner, (*path, name), values) for name, inner in record.fields}

    def _tree(self, type_: Type, path: tuple[str, ...], values: Mapping[tuple[str, ...], Array]) -> object:
        match type_:
            case Record():
                return self._record(type_, path, values)
            case Tuple(items):
                return tuple(self._tree(item, (*path, str(n)), values) for n, item in enumerate(items))
            case List(item=item):
                return self._tree(item, (*path, "*"), values)
            case _:
                return values[path]


def _leaves_of(type_: Type, path: tuple[str, ...] = (), lists: tuple[Dim, ...] = ()) -> Iterator[Leaf]:
    match type_:
        case Tensor():
            yield Leaf(path, type_, lists)
        case Record(fields=fields):
            for name, inner in fields:
                yield from _leaves_of(inner, (*path, name), lists)
        case Tuple(items):
            for number, inner in enumerate(items):
                yield from _leaves_of(inner, (*path, str(number)), lists)
        case List(size, inner):
            yield from _leaves_of(inner, (*path, "*"), (*lists, size))
        case _:
            raise KinaError(f"a record with a field of type {type_} has no weights to be bound")


def in_one(arrays: Sequence[Array]) -> Array:
    """Arrays of one shape with an axis in front: a view where they lie at equal steps of one file, else a copy."""
    first = arrays[0]
    places = [array.__array_interface__["data"][0] for array in arrays]
    steps = {b - a for a, b in pairwise(places)}
    whole = steps and min(steps) > 0 and min(steps) % first.itemsize == 0
    owners = {id(_owner(array)) for array in arrays}
    if len(steps) == 1 and whole and len(owners) == 1 and len({array.strides for array in arrays}) == 1:
        return np.lib.stride_tricks.as_strided(
            first, (len(arrays), *first.shape), (steps.pop(), *first.strides), writeable=False
        )
    return np.stack(arrays)


def _owner(array: Array) -> object:
    owner: object = array
    while isinstance(owner, np.ndarray) and owner.base is not None:
        owner = owner.base
    return owner
