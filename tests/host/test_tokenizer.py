"""Tokenizers built from a GGUF file's vocabulary."""

from __future__ import annotations

import sys

import pytest
from gguf_samples import write_gguf
from real_model import PATH, needs_model
from smollm_cases import CASES

from kina.diagnostics import KinaError
from kina.host.gguf_file import open_gguf
from kina.host.tokenizer import tokenizer_of

# Byte-level names: Ġ is the space.
TOKENS = ["<s>", "a", "b", "1", "2", "Ġ", "ab", "Ġab", "12", "{x}", "{", "x", "}", "<", "s", ">"]
MERGES = ["a b", "Ġ ab", "1 2"]
TYPES = [3, *[1] * 8, 4, *[1] * 6]


def file_with(tmp_path, **changes):
    metadata = {
        "tokenizer__ggml__model": "gpt2",
        "tokenizer__ggml__pre": "smollm",
        "tokenizer__ggml__tokens": TOKENS,
        "tokenizer__ggml__merges": MERGES,
        "tokenizer__ggml__token_type": TYPES,
    }
    kept = {key: value for key, value in (metadata | changes).items() if value is not None}
    return open_gguf(write_gguf(tmp_path / "vocabulary.gguf", {}, **kept))


def test_merges_apply_and_a_space_belongs_to_the_word_after_it(tmp_path):
    assert tokenizer_of(file_with(tmp_path)).encode("ab ab ba").ids == [6, 7, 5, 2, 1]


def test_smollm_cuts_every_digit_off_and_gpt2_does_not(tmp_path):
    assert tokenizer_of(file_with(tmp_path)).encode("12").ids == [3, 4]
    assert tokenizer_of(file_with(tmp_path, tokenizer__ggml__pre="gpt-2")).encode("12").ids == [8]


def test_control_tokens_are_whole_unless_the_text_is_not_trusted(tmp_path):
    tokenizer = tokenizer_of(file_with(tmp_path))
    assert tokenizer.encode("<s>{x}a").ids == [0, 9, 1]
    tokenizer.encode_special_tokens = True
    assert tokenizer.encode("<s>a").ids == [13, 14, 15, 1]


def test_decoding_gives_the_text_back(tmp_path):
    tokenizer = tokenizer_of(file_with(tmp_path))
    assert tokenizer.decode(tokenizer.encode("ab 12 ab").ids) == "ab 12 ab"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"tokenizer__ggml__model": "llama"}, "a vocabulary of the kind 'llama'"),
        ({"tokenizer__ggml__model": None}, "a vocabulary of the kind None"),
        ({"tokenizer__ggml__pre": "qwen35"}, "the unknown rule 'qwen35'; known: default, gpt-2, smollm"),
        ({"tokenizer__ggml__merges": None}, "tokenizer.ggml.merges is missing"),
        ({"tokenizer__ggml__merges": ["ab"]}, "the merge 'ab' is not two tokens"),
        ({"tokenizer__ggml__merges": ["b b"]}, "the merges do not fit the vocabulary"),
        ({"tokenizer__ggml__tokens": ["a", "b", "a"], "tokenizer__ggml__token_type": [1, 1, 1]}, "1 tokens twice"),
        ({"tokenizer__ggml__token_type": [1]}, "token_type is no array of 16 numbers"),
    ],
)
def test_a_vocabulary_that_does_not_hold_together_is_refused(tmp_path, changes, problem):
    with pytest.raises(KinaError, match=problem) as caught:
        tokenizer_of(file_with(tmp_path, **changes))
    assert "vocabulary.gguf: " in str(caught.value)


def test_without_the_library_the_error_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(KinaError, match=r"pip install 'kina-lang\[models\]'"):
        tokenizer_of(file_with(tmp_path))


@needs_model
def test_the_real_vocabulary_gives_the_published_ids_and_the_text_back():
    tokenizer = tokenizer_of(open_gguf(PATH))
    for text, ids in CASES:
        assert tuple(tokenizer.encode(text).ids) == ids, text
        assert tokenizer.decode(list(ids), skip_special_tokens=False) == text
