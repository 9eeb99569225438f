"""LLaMA in NumPy, from the papers, with nothing of Kina in it: what the model in Kina is held against.

Touvron et al. 2023 (arXiv 2302.13971) with RMSNorm (Zhang and Sennrich 2019), rotary embeddings as complex
numbers (Su et al. 2021; neighbouring pairs, as GGUF files lay them), SwiGLU (Shazeer 2020) and grouped queries (Ainslie
et al. 2023). There is no cache: a text goes through whole. Weights are read and dequantised by the gguf package.
"""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np


class NumpyLlama:
    """The model of a GGUF file, in `dtype`."""

    def __init__(self, path: Path, dtype: type = np.float32) -> None:
        reader = gguf.GGUFReader(path)
        self.dtype = dtype
        self.tensors = {
            t.name: gguf.quants.dequantize(t.data, t.tensor_type).reshape(t.shape[::-1]).astype(dtype)
            for t in reader.tensors
        }
        fields = {name: field.contents() for name, field in reader.fields.items() if name.startswith("llama.")}
        self.layers = fields["llama.block_count"]
        self.heads = fields["llama.attention.head_count"]
        self.kv_heads = fields["llama.attention.head_count_kv"]
        self.eps = fields["llama.attention.layer_norm_rms_epsilon"]
        self.base = fields["llama.rope.freq_base"]

    def logits(self, tokens: list[int]) -> np.ndarray:
        """`[S] -> [S, V]`: of every position, for the token after it."""
        x = self.tensors["token_embd.weight"][tokens]
        for n in range(self.layers):
            x = x + self.attention(n, self.normed(x, f"blk.{n}.attn_norm"))
            h = self.normed(x, f"blk.{n}.ffn_norm")
            gate = self.linear(h, f"blk.{n}.ffn_gate")
            x = x + self.linear(gate / (1 + np.exp(-gate)) * self.linear(h, f"blk.{n}.ffn_up"), f"blk.{n}.ffn_down")
        last = "output" if "output.weight" in self.tensors else "token_embd"
        return self.linear(self.normed(x, "output_norm"), last)

    def attention(self, n: int, h: np.ndarray) -> np.ndarray:
        s = len(h)
        q, k, v = (self.linear(h, f"blk.{n}.attn_{name}") for name in "qkv")
        q, k = self.rotated(q.reshape(s, self.heads, -1)), self.rotated(k.reshape(s, self.kv_heads, -1))
        v = v.reshape(s, self.kv_heads, -1)
        out = np.empty_like(q)
        for head in range(self.heads):
            shared = head // (self.heads // self.kv_heads)
            scores = q[:, head] @ k[:, shared].T / np.sqrt(q.shape[-1], dtype=self.dtype)
            scores[np.triu_indices(s, 1)] = -np.inf
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            out[:, head] = weights / weights.sum(-1, keepdims=True) @ v[:, shared]
        return self.linear(out.reshape(s, -1), f"blk.{n}.attn_output")

    def rotated(self, x: np.ndarray) -> np.ndarray:
        """`[S, H, E]`: each neighbouring pair is a complex number, turned by its position's angle."""
        s, _, e = x.shape
        angles = np.outer(np.arange(s), float(self.base) ** (-np.arange(0, e, 2) / e))
        pairs = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * angles)[:, None]
        turned = np.empty_like(x)
        turned[..., 0::2], turned[..., 1::2] = pairs.real, pairs.imag
        return turned

    def normed(self, x: np.ndarray, name: str) -> np.ndarray:
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.dtype(self.eps)) * self.tensors[f"{name}.weight"]

    def linear(self, x: np.ndarray, name: str) -> np.ndarray:
        return x @ self.tensors[f"{name}.weight"].T
