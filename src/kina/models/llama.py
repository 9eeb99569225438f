"""Models of the LLaMA family out of GGUF files, run by `llama.kina`: weights, tokenizer, and sessions with a cache."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kina.diagnostics import KinaError
from kina.host.api import load
from kina.host.gguf_file import GGUFFile, open_gguf
from kina.host.tokenizer import tokenizer_of
from kina.host.weight_file import GGUFWeights

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from kina.host.module import Module

PROGRAM = Path(__file__).with_name("llama.kina")
ARCHITECTURE = "llama"
_LONGEST_CHUNK = 256
"""Tokens of a prompt that go through the model at once: what is in between then stays small."""
_FIRST_CAPACITY = 256


@dataclass(frozen=True, slots=True)
class Shape:
    """What the metadata says of a model; `context` is the most positions, `base` RoPE's, `eps` that of RMSNorm."""

    layers: int
    heads: int
    kv_heads: int
    head_size: int
    context: int
    base: float
    eps: float

    @property
    def sizes(self) -> dict[str, int]:
        """Those that the program's record cannot read off the weights."""
        return {"L": self.layers, "KV": self.kv_heads, "G": self.heads // self.kv_heads, "E": self.head_size}

    @staticmethod
    def of(file: GGUFFile) -> Shape:
        """Raises KinaError for a model that `llama.kina` is not, with what it has."""
        if file.architecture != ARCHITECTURE:
            raise KinaError(f"{file.path}: a model of the architecture {file.architecture!r}; known: {ARCHITECTURE!r}")
        heads = file.number("attention.head_count")
        kv_heads = file.number("attention.head_count_kv", heads)
        if not 0 < kv_heads <= heads or heads % kv_heads:
            raise KinaError(f"{file.path}: {heads} heads cannot share {kv_heads} key/value heads")
        head_size = file.number("attention.key_length", file.embedding_length // heads)
        _only(file, "attention.value_length", head_size)
        _only(file, "rope.dimension_count", head_size)
        _only(file, "expert_count", 0)
        scaling = file.metadata.get(f"{ARCHITECTURE}.rope.scaling.type", "none")
        if scaling != "none":
            raise KinaError(f"{file.path}: positions are scaled by {scaling!r}, which llama.kina does not do")
        base = file.real("rope.freq_base", 10000.0)
        context = file.number("context_length")
        return Shape(file.block_count, heads, kv_heads, head_size, context, base, file.rms_epsilon)


def _only(file: GGUFFile, key: str, value: int) -> None:
    """A metadata key that, where it is there, has to have this value."""
    got = file.number(key, value)
    if got != value:
        raise KinaError(f"{file.path}: {file.architecture}.{key} is {got}, and llama.kina is for {value} only")


@dataclass(frozen=True, eq=False)
class Llama:
    """A model that is ready to run. `weights` is the record `Llama` of the program."""

    file: GGUFFile
    shape: Shape
    module: Module
    weights: dict[str, Any]
    tokenizer: Tokenizer

    @staticmethod
    def open(path: str | os.PathLike[str]) -> Llama:
        """Raises KinaError where the file is no such model, or lacks what the model needs."""
        file = open_gguf(path)
        shape = Shape.of(file)
        module = load(PROGRAM)
        names = {"embedding": "token_embd", "layers": "blk", "norm": "output_norm"}
        if "output.weight" not in file.tensors:
            names["output"] = names["embedding"]  # tied: the table is read both ways
        weights = module.Llama.bind(GGUFWeights(file), names=names, convert=True, **shape.sizes)
        tokenizer = tokenizer_of(file)
        if (size := tokenizer.get_vocab_size()) > (rows := file.info("token_embd.weight").shape[0]):
            raise KinaError(f"{file.path}: {size} tokens in the vocabulary, {rows} in the embedding")
        return Llama(file, shape, module, weights, tokenizer)

    @property
    def end_of_turn(self) -> frozenset[int]:
        """The tokens after which a model has said all."""
        keys = (f"tokenizer.ggml.{kind}_token_id" for kind in ("eos", "eot", "eom"))
        return frozenset(int(value) for key in keys if isinstance(value := self.file.metadata.get(key), int))

    def encode(self, text: str) -> list[int]:
        """The ids of a text, behind the beginning-of-sequence token where the model wants one."""
        ids: list[int] = self.tokenizer.encode(text).ids
        first = self.file.metadata.get("tokenizer.ggml.bos_token_id")
        wants = self.file.metadata.get("tokenizer.ggml.add_bos_token") is True and isinstance(first, int)
        return [int(first), *ids] if wants and ids[:1] != [first] else ids  # type: ignore[arg-type]


@dataclass(eq=False)
class Session:
    """A text that a model has read and written so far, with the keys and values of its positions.

    They lie in buffers with room for more; the program reads the part that is filled, in place, and gives what is new.
    """

    model: Llama
    ids: list[int] = field(default_factory=list)
    """The tokens whose keys and values are in the cache."""

    def __post_init__(self) -> None:
        shape = self.model.shape
        self._keys = np.empty((shape.layers, shape.kv_heads, _FIRST_CAPACITY, shape.head_size), np.float32)
        self._values = np.empty_like(self._keys)

    def generate(self, ids: Sequence[int], most: int, temperature: float = 0.0, seed: int = 0) -> Iterator[int]:
        """The tokens that follow a text, at most so many, ending before an end of turn; the same for the same seed.

        What the text shares with that of the session is not computed again. Raises KinaError where the text is empty
        or does not fit the model's context; ends where the context is full.
        """
        draws = np.random.default_rng(seed)
        token = self._read(ids, temperature, draws)
        for count in range(1, most + 1):
            if token in self.model.end_of_turn:
                return
            yield token
            if count == most or len(self.ids) >= self.model.shape.context:
                return
            token = self._step([token], temperature, draws)

    def _read(self, ids: Sequence[int], temperature: float, draws: np.random.Generator) -> int:
        """The token after a text: what is new of it goes through the model."""
        context = self.model.shape.context
        if not ids:
            raise KinaError("there is no text to go on from: the prompt has no tokens")
        if len(ids) > context:
            raise KinaError(f"the text has {len(ids)} tokens, more than the {context} of the model's context")
        shared = 0
        while shared < min(len(self.ids), len(ids) - 1) and self.ids[shared] == ids[shared]:
            shared += 1
        del self.ids[shared:]
        for start in range(shared, len(ids), _LONGEST_CHUNK):
            token = self._step(ids[start : start + _LONGEST_CHUNK], temperature, draws)
        return token

    def _step(self, ids: Sequence[int], temperature: float, draws: np.random.Generator) -> int:
        start, end = len(self.ids), len(self.ids) + len(ids)
        self._make_room(end)
        past = (self._keys[:, :, :start], self._values[:, :, :start])
        shape, tokens = self.model.shape, np.array(ids, np.int64)
        numbers = (shape.base, shape.eps, float(temperature), float(draws.random(dtype=np.float32)))
        token, keys, values = self.model.module.step(self.model.weights, tokens, *past, *numbers)
        self._keys[:, :, start:end], self._values[:, :, start:end] = keys, values
        self.ids += ids  # last, so that an interrupt before it leaves the session as it was
        return int(token)

    def _make_room(self, size: int) -> None:
        """Twice the room where it is too small, so that each position is moved a few times at most."""
        have = self._keys.shape[2]
        if size > have:
            self._keys, self._values = (_widened(x, max(size, 2 * have)) for x in (self._keys, self._values))


def _widened(x: npt.NDArray[np.float32], room: int) -> npt.NDArray[np.float32]:
    wider = np.empty((*x.shape[:2], room, x.shape[3]), np.float32)
    wider[:, :, : x.shape[2]] = x
    return wider
