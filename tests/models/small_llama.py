"""A LLaMA of a few thousand random weights, in a file of the form that real ones have."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from gguf_samples import write_gguf

SPECIAL = ("<end>", "<start>")
TEMPLATE = (
    "{% for m in messages %}<start>{{ m['role'][0] }}{{ m['content'] }}<end>{% endfor %}"
    "{% if add_generation_prompt %}<start>{% endif %}"
)


def vocabulary() -> list[str]:
    """Special tokens, then every byte, then pairs that merge: token 0 ends a turn."""
    from tokenizers.pre_tokenizers import ByteLevel

    return [*SPECIAL, *sorted(ByteLevel.alphabet()), "th", "the"]


def write_llama(
    path: Path, *, layers: int = 2, heads: int = 4, kv_heads: int = 2, head_size: int = 8, ffn: int = 64,
    format_: str = "Q4_1", tied: bool = True, seed: int = 0, changes: Mapping[str, object] | None = None,
    scale: float = 0.3, changes_of_format: Mapping[str, str] | None = None,
) -> Path:  # fmt: skip
    """A model over bytes. `changes` are metadata entries (dots as `__`), None leaves one out."""
    tokens = vocabulary()
    width = heads * head_size
    draw = np.random.default_rng(seed).standard_normal

    def weight(*shape: int) -> np.ndarray:
        return (draw(shape) * scale).astype(np.float32)

    tensors = {
        "token_embd.weight": (weight(len(tokens), width), "Q8_0"),
        "output_norm.weight": (1 + weight(width), "F32"),
    }
    if not tied:
        tensors["output.weight"] = (weight(len(tokens), width), "Q8_0")
    for n in range(layers):
        shapes = {"attn_q": (width, width), "attn_k": (kv_heads * head_size, width), "ffn_down": (width, ffn),
                  "attn_v": (kv_heads * head_size, width), "attn_output": (width, width), "ffn_gate": (ffn, width),
                  "ffn_up": (ffn, width)}  # fmt: skip
        tensors |= {f"blk.{n}.{name}.weight": (weight(*shape), format_) for name, shape in shapes.items()}
        tensors |= {f"blk.{n}.{name}.weight": (1 + weight(width), "F32") for name in ("attn_norm", "ffn_norm")}
    for name, other in (changes_of_format or {}).items():
        tensors[name] = (tensors[name][0], other)
    metadata: dict[str, object] = {
        "llama__block_count": layers, "llama__context_length": 512, "llama__embedding_length": width,
        "llama__feed_forward_length": ffn, "llama__attention__head_count": heads,
        "llama__attention__head_count_kv": kv_heads, "llama__rope__freq_base": 10000.0,
        "llama__rope__dimension_count": head_size, "llama__attention__layer_norm_rms_epsilon": 1e-5,
        "tokenizer__ggml__model": "gpt2", "tokenizer__ggml__pre": "smollm", "tokenizer__ggml__tokens": tokens,
        "tokenizer__ggml__merges": ["t h", "th e"], "tokenizer__ggml__token_type": [3, 3, *[1] * (len(tokens) - 2)],
        "tokenizer__ggml__eos_token_id": 0, "tokenizer__ggml__bos_token_id": 1, "tokenizer__chat_template": TEMPLATE,
    }  # fmt: skip
    kept = {key: value for key, value in (metadata | dict(changes or {})).items() if value is not None}
    return write_gguf(path, tensors, **kept)
