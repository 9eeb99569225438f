"""Tokenizers from the vocabulary that a GGUF file carries: byte-level BPE, by the `tokenizers` library.

A file names how text is cut before merging (`tokenizer.ggml.pre`). The rules here are llama.cpp's for
those names; all of them cut by GPT-2's expression, which `ByteLevel` brings, after a step of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kina.diagnostics import KinaError
from kina.host.gguf_file import GGUFFile

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from tokenizers.pre_tokenizers import PreTokenizer

# What is cut off first, one match a piece.
_CUT_FIRST: Mapping[str, str | None] = {
    "default": None,
    "gpt-2": None,
    "smollm": r"\p{N}",  # every digit alone
}
_CONTROL, _USER_DEFINED = 3, 4  # the values of tokenizer.ggml.token_type that are matched whole


def tokenizer_of(file: GGUFFile) -> Tokenizer:
    """The tokenizer of a model: `.encode(text).ids` and `.decode(ids)`.

    Control tokens (`<|im_start|>`) in a text are recognised; for text from outside, set the result's
    `encode_special_tokens = True`, then they are plain characters. Raises KinaError where the file has no
    vocabulary or one of another kind, and where `tokenizers` is not installed.
    """
    try:
        from tokenizers import AddedToken, Tokenizer, decoders, models
    except ImportError:
        raise KinaError("tokenizers are not installed; they come with: pip install 'kina-lang[models]'") from None
    model = file.metadata.get("tokenizer.ggml.model")
    if model != "gpt2":
        raise KinaError(f"{file.path}: a vocabulary of the kind {model!r}; only 'gpt2' (byte-level BPE) can be read")
    tokens = file.strings("tokenizer.ggml.tokens")
    vocabulary = {token: number for number, token in enumerate(tokens)}
    if len(vocabulary) != len(tokens):
        raise KinaError(f"{file.path}: the vocabulary has {len(tokens) - len(vocabulary)} tokens twice")
    merges = [_pair(file, merge) for merge in file.strings("tokenizer.ggml.merges")]
    try:
        tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    except Exception as error:  # the library raises nothing narrower
        raise KinaError(f"{file.path}: the merges do not fit the vocabulary: {error}") from None
    tokenizer.pre_tokenizer = _pre_tokenizer(file)
    tokenizer.decoder = decoders.ByteLevel()
    kinds = _token_types(file, len(tokens))
    for token, kind in zip(tokens, kinds, strict=True):
        if kind == _CONTROL:
            tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False)])
        elif kind == _USER_DEFINED:
            tokenizer.add_tokens([AddedToken(token, normalized=False)])
    return tokenizer


def _pre_tokenizer(file: GGUFFile) -> PreTokenizer:
    from tokenizers import Regex, pre_tokenizers

    name = file.metadata.get("tokenizer.ggml.pre", "default")
    if not isinstance(name, str) or name not in _CUT_FIRST:
        known = ", ".join(_CUT_FIRST)
        raise KinaError(f"{file.path}: text is cut by the unknown rule {name!r}; known: {known}")
    by_expression = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    first = _CUT_FIRST[name]
    if first is None:
        return by_expression
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(first), behavior="isolated"), by_expression])


def _pair(file: GGUFFile, merge: str) -> tuple[str, str]:
    left, space, right = merge.partition(" ")
    if not (left and space and right) or " " in right:
        raise KinaError(f"{file.path}: the merge {merge!r} is not two tokens with a space between")
    return left, right


def _token_types(file: GGUFFile, count: int) -> tuple[object, ...]:
    kinds = file.metadata.get("tokenizer.ggml.token_type", (1,) * count)
    if not isinstance(kinds, tuple) or len(kinds) != count:
        raise KinaError(f"{file.path}: tokenizer.ggml.token_type is no array of {count} numbers")
    return kinds
