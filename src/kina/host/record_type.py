"""Record types of a module as Python objects: weights are bound to them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from kina.diagnostics import KinaError
from kina.elaborate.record_forms import RecordForm
from kina.host.binding import Binding, Renaming
from kina.host.weight_file import Arrays, Path, WeightFile, open_weights
from kina.types import DType


class RecordType:
    """A record type of a Kina module: `module.Model.load("model.safetensors")` gives a value of it.

    Fields are bound to tensors by name. A field's path is its names joined by dots, items of lists by number:
    `layers.3.norm` is the file's tensor of that name, or `layers.3.norm.weight`. Where the file has other names,
    `names` gives them: a mapping from paths, or the fronts of paths, to the file's, with `*` for numbers
    (`{"layers.*.norm": "blk.*.attn_norm"}`), or a function from a path to a name.

    Sizes are read off the shapes; one that they leave open is given by name (`H=8`), as are dtypes (`W="F32"`). A
    tensor keeps the format that it is stored in, quantised ones too; with `convert` it is read as the field's float
    dtype where that is another. The tensors of a list become one with an axis in front. Nothing else is copied: the
    arrays are views of the file, which stays mapped while they are used, and must not be changed meanwhile.

    Raises KinaError with all that does not fit: what is missing, extra (but for names that `ignore` has patterns for),
    of another shape or format. The value is a dictionary (of dictionaries), as functions take records.
    """

    def __init__(self, form: RecordForm) -> None:
        self.__name__ = self.__qualname__ = form.name
        self.__doc__ = form.declaration.documentation or None
        self._form = form

    def load(
        self, path: Path | Sequence[Path], *, names: Renaming | None = None, convert: bool = False,
        ignore: Collection[str] = (), **given: int | str,
    ) -> dict[str, Any]:  # fmt: skip
        """The weights in a safetensors or GGUF file, or in several that belong together."""
        return self._bound(open_weights(path), names, convert, ignore, given)

    def bind(
        self, tensors: Mapping[str, Any] | WeightFile, *, names: Renaming | None = None, convert: bool = False,
        ignore: Collection[str] = (), **given: int | str,
    ) -> dict[str, Any]:  # fmt: skip
        """The same from arrays that are there already: a mapping of names, such as a PyTorch `state_dict`."""
        file = Arrays.of(tensors) if isinstance(tensors, Mapping) else tensors
        return self._bound(file, names, convert, ignore, given)

    def _bound(
        self, file: WeightFile, names: Renaming | None, convert: bool, ignore: Collection[str],
        given: Mapping[str, int | str],
    ) -> dict[str, Any]:  # fmt: skip
        sizes = {name: self._size(name, value) for name, value in given.items() if name not in self._form.dtypes}
        dtypes = {name: self._dtype(name, value) for name, value in given.items() if name in self._form.dtypes}

        def ignored(name: str) -> bool:
            return any(fnmatchcase(name, pattern) for pattern in ignore)

        return Binding(self._form, file, names or {}, convert, sizes, dtypes, ignored).bound()

    def _size(self, name: str, value: int | str) -> int:
        if name not in self._form.sizes:
            known = ", ".join((*self._form.sizes, *self._form.dtypes)) or "none"
            raise KinaError(f"{self.__name__} has no size {name}; it has: {known}")
        if isinstance(value, bool) or not hasattr(value, "__index__") or int(value) < 0:
            raise KinaError(f"{self.__name__}: the size {name} has to be an int >= 0, got {value!r}")
        return int(value)

    def _dtype(self, name: str, value: int | str) -> DType:
        dtype = DType.__members__.get(str(value))
        if dtype is None or not self._form.admits(name, dtype):
            raise KinaError(f"{self.__name__}: {name} is a dtype of the class {self._form.dtypes[name]}, not {value!r}")
        return dtype

    def __repr__(self) -> str:
        return f"<kina type {self.__name__}>"
