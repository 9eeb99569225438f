"""Small GGUF files, written by the gguf package, for tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import gguf
import numpy as np

FORMATS = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1")


def weights(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def quantised(values: np.ndarray, format_: str) -> np.ndarray:
    return gguf.quants.quantize(values, gguf.GGMLQuantizationType[format_])


def write_gguf(path: Path, tensors: Mapping[str, tuple[np.ndarray, str]], **metadata: object) -> Path:
    """A file of the architecture "llama" with those tensors (values, format); keys have `__` for a dot."""
    writer = gguf.GGUFWriter(path, "llama")
    for key, value in metadata.items():
        name = key.replace("__", ".")
        if isinstance(value, str):
            writer.add_string(name, value)
        elif isinstance(value, int):
            writer.add_uint32(name, value)
        elif isinstance(value, float):
            writer.add_float32(name, value)
        else:
            writer.add_array(name, value)
    for name, (values, format_) in tensors.items():
        kind = gguf.GGMLQuantizationType[format_]
        writer.add_tensor(name, quantised(values, format_), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def small_model(path: Path) -> Path:
    """A tensor of each format and the metadata of a model."""
    tensors = {f"w.{format_}": (weights(i, 3, 64), format_) for i, format_ in enumerate(FORMATS)}
    return write_gguf(
        path,
        tensors,
        llama__block_count=2,
        llama__embedding_length=64,
        llama__attention__layer_norm_rms_epsilon=1e-5,
        tokenizer__chat_template="{{ messages }}",
        tokenizer__ggml__tokens=["a", "b", "ab"],
        tokenizer__ggml__scores=[1, 2, 3],
    )
