"""LLaMA in Kina against the same in NumPy, over a small random model and over SmolLM2 where it is here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy_llama import NumpyLlama
from real_model import PATH, needs_model
from small_llama import write_llama

import kina
from kina import KinaError
from kina.models.llama import PROGRAM, Llama, Session
from kina.pipeline import check
from kina.source import Source
from kina.types import DType

pytest.importorskip("tokenizers")
TOKENS = [5, 80, 3, 3, 200, 41, 9, 258, 17, 64, 33]


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    return write_llama(tmp_path_factory.mktemp("llama") / "small.gguf")


@pytest.fixture(scope="module")
def llama(path) -> Llama:
    return Llama.open(path)


def forward(llama: Llama, tokens: list[int], cached: int = 0, **how: str) -> np.ndarray:
    """The logits after all tokens; the first `cached` of them go through on their own before."""
    shape = llama.shape
    run = llama.module.forward.reference if how else llama.module.forward
    past = np.empty((2, shape.layers, shape.kv_heads, 0, shape.head_size), np.float32)
    for part in (tokens[:cached], tokens[cached:]):
        if part:
            logits, k, v = run(llama.weights, np.array(part), past[0], past[1], shape.base, shape.eps)
            past = np.concatenate([past, [k, v]], axis=3)
    return logits


def greedy(llama: Llama, ids: list[int], most: int) -> list[int]:
    return list(Session(llama).generate(ids, most))


def agrees_greedily(numpy: NumpyLlama, ids: list[int], following: list[int]) -> None:
    """Each token is what NumPy finds likeliest after all before it: so it is NumPy's own greedy continuation."""
    likeliest = numpy.logits([*ids, *following]).argmax(-1)
    assert likeliest[len(ids) - 1 : len(ids) + len(following) - 1].tolist() == following


# ---------------------------------------------------------------- the program


def test_the_model_checks_for_every_size_with_nothing_left_for_run_time():
    checked = check(Source(PROGRAM.name, PROGRAM.read_text(encoding="utf-8")))
    assert checked.ok
    assert "runtime" not in {o.status_text for o in checked.elaboration.obligations}


@pytest.mark.parametrize("cached", [0, 1, 4, 10])
@pytest.mark.parametrize("format_", ["F32", "Q8_0", "Q4_1"])
def test_logits_are_those_of_numpy_with_any_part_of_the_text_cached(tmp_path, format_, cached):
    path = write_llama(tmp_path / "m.gguf", format_=format_)
    exact = NumpyLlama(path, np.float64).logits(TOKENS)[-1]
    np.testing.assert_allclose(forward(Llama.open(path), TOKENS, cached), exact, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("heads", "kv_heads"), [(1, 1), (4, 1), (4, 4), (6, 2)])
def test_any_number_of_heads_may_share_keys(tmp_path, heads, kv_heads):
    # Rows of quantised weights are whole blocks of 32.
    shape = {"heads": heads, "kv_heads": kv_heads, "head_size": 32}
    path = write_llama(tmp_path / "m.gguf", **shape, tied=False, layers=1, scale=0.1)
    exact = NumpyLlama(path, np.float64).logits(TOKENS)[-1]
    np.testing.assert_allclose(forward(Llama.open(path), TOKENS, 3), exact, rtol=1e-4, atol=1e-4)


def test_native_code_and_the_reference_agree(llama):
    native, reference = forward(llama, TOKENS, 4), forward(llama, TOKENS, 4, by="reference")
    np.testing.assert_allclose(native, reference, rtol=1e-4, atol=1e-4)


def test_one_compilation_serves_every_length_of_prompt_cache_and_answer(llama):
    for ids in ([1], TOKENS, TOKENS * 30):
        greedy(llama, ids, 5)
    assert llama.module.step.compilations == 1


# ---------------------------------------------------------------- sampling


def test_the_likeliest_token_at_temperature_0_and_by_chance_above():
    module = kina.load(PROGRAM)
    logits = np.log(np.array([0.1, 0.2, 0.0, 0.7], np.float32), where=[True, True, False, True],
                    out=np.full(4, -np.inf, np.float32))  # fmt: skip
    assert module.sample(logits, 0.0, 0.3) == 3
    draws = [0.0, 0.0999, 0.1001, 0.2999, 0.3001, 0.99999994]
    assert [int(module.sample(logits, 1.0, d)) for d in draws] == [0, 0, 1, 1, 3, 3]
    for cold in (0.01, 1e-30, 1e-45):
        assert [int(module.sample(logits, cold, d)) for d in draws] == [3] * 6


def test_samples_come_as_often_as_their_probabilities_say():
    module = kina.load(PROGRAM)
    p = np.array([0.5, 0.25, 0.15, 0.1])
    draws = np.random.default_rng(0).random(2000, np.float32)
    tokens = [int(module.sample(np.log(p).astype(np.float32), 1.0, float(d))) for d in draws]
    np.testing.assert_allclose(np.bincount(tokens) / len(draws), p, atol=0.03)


# ---------------------------------------------------------------- sessions


def test_a_greedy_continuation_is_numpy_s_token_for_token(llama, path):
    numpy = NumpyLlama(path)
    for ids in ([7], TOKENS, TOKENS[::-1]):
        agrees_greedily(numpy, ids, greedy(llama, ids, 12))


def test_the_same_seed_gives_the_same_text_and_another_another(llama):
    first, again, other = (list(Session(llama).generate(TOKENS, 20, 1.0, seed)) for seed in (1, 1, 2))
    assert first == again != other


def test_a_turn_ends_before_its_end_token_and_at_the_most(llama, path):
    assert len(greedy(llama, TOKENS, 3)) == 3
    ended = Llama(llama.file, llama.shape, llama.module, llama.weights, llama.tokenizer)
    following = greedy(llama, TOKENS, 6)
    ended.file.metadata["tokenizer.ggml.eot_token_id"] = following[4]
    try:
        assert greedy(ended, TOKENS, 6) == following[: following.index(following[4])]
    finally:
        del ended.file.metadata["tokenizer.ggml.eot_token_id"]


def test_a_text_that_goes_on_from_the_session_s_is_not_computed_again(llama, monkeypatch):
    session = Session(llama)
    read = []
    step = session._step
    monkeypatch.setattr(session, "_step", lambda ids, *rest: (read.append(len(ids)), step(ids, *rest))[1])
    following = list(session.generate(TOKENS, 4))
    assert read == [11, 1, 1, 1]
    read.clear()
    longer = [*TOKENS, *following, 30, 31]
    assert list(session.generate(longer, 2)) == greedy(llama, longer, 2)
    assert read == [3, 1]  # the last token of an answer was not read yet
    read.clear()
    assert list(session.generate(TOKENS[:6], 2)) == greedy(llama, TOKENS[:6], 2)
    assert read == [1, 1]


def test_an_interrupted_session_goes_on(llama):
    session = Session(llama)
    tokens = session.generate(TOKENS, 10)
    begun = [next(tokens), next(tokens)]
    tokens.close()
    longer = [*TOKENS, *begun, 12]
    assert list(session.generate(longer, 3)) == greedy(llama, longer, 3)


def test_a_long_prompt_goes_through_in_parts_and_the_cache_grows(llama, path):
    ids = [(7 * n) % 250 + 2 for n in range(500)]
    following = greedy(llama, ids, 3)
    agrees_greedily(NumpyLlama(path), ids, following)


def test_a_full_context_ends_the_text_and_a_longer_prompt_is_refused(llama):
    ids = [5] * 510
    assert 1 <= len(greedy(llama, ids, 10)) <= 3
    with pytest.raises(KinaError, match="513 tokens, more than the 512"):
        greedy(llama, [5] * 513, 1)
    with pytest.raises(KinaError, match="no tokens"):
        greedy(llama, [], 1)


# ---------------------------------------------------------------- the whole loop in Kina


def generated(llama: Llama, ids: list[int], most: int, temperature: float = 0.0, stops: tuple[int, ...] = ()):
    """What `generate` gives: the tokens, and the keys."""
    shape, rows = llama.shape, llama.file.info("token_embd.weight").shape[0]
    past = np.empty((shape.layers, shape.kv_heads, 0, shape.head_size), np.float32)
    draws = np.random.default_rng(0).random(most + 1, np.float32)
    ends = np.isin(np.arange(rows), list(stops))
    numbers = (shape.base, shape.eps, temperature, draws, ends)
    said, keys, _ = llama.module.generate(llama.weights, np.array(ids), past, past, *numbers)
    return said.tolist(), keys


def test_generate_says_what_a_session_says_and_grows_the_cache_by_it(llama):
    for temperature in (0.0, 1.0):
        following = list(Session(llama).generate(TOKENS, 8, temperature))
        assert len(following) == 8
        said, keys = generated(llama, TOKENS, 8, temperature)
        assert said == following
        assert keys.shape[2] == len(TOKENS) + 8


def test_generate_stops_before_an_end_of_turn_whatever_may_follow(llama):
    following = greedy(llama, TOKENS, 8)
    first = following.index(following[5])
    said, keys = generated(llama, TOKENS, 100, stops=(following[5],))
    assert said == following[:first]
    assert keys.shape[2] == len(TOKENS) + first
    assert llama.module.generate.compilations == 1


# ---------------------------------------------------------------- formats


def test_quantised_weights_stay_as_they_are_stored(llama):
    layers = llama.weights["layers"]
    assert layers["attn_q"].dtype is DType.Q4_1.numpy
    assert llama.weights["embedding"].dtype is DType.Q8_0.numpy
    assert np.shares_memory(llama.weights["output"], llama.weights["embedding"])
    assert layers["attn_norm"].dtype == np.float32


def test_weights_of_several_formats_are_read_as_f32(tmp_path):
    path = write_llama(tmp_path / "m.gguf", changes_of_format={"blk.1.attn_v.weight": "F16"})
    llama = Llama.open(path)
    assert llama.weights["layers"]["attn_v"].dtype == np.float32
    exact = NumpyLlama(path, np.float64).logits(TOKENS)[-1]
    np.testing.assert_allclose(forward(llama, TOKENS, 4), exact, rtol=1e-4, atol=1e-4)


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"general__architecture": "qwen2"}, "architecture 'qwen2'"),
        ({"llama__attention__head_count": 3}, "3 heads cannot share 2"),
        ({"llama__attention__head_count_kv": 0}, "4 heads cannot share 0"),
        ({"llama__attention__head_count": 0}, "0 heads cannot share"),
        ({"llama__rope__dimension_count": 4}, "rope.dimension_count is 4, and llama.kina is for 8 only"),
        ({"llama__expert_count": 8}, "expert_count is 8"),
        ({"llama__rope__scaling__type": "yarn"}, "positions are scaled by 'yarn'"),
        ({"llama__context_length": None}, "llama.context_length is missing"),
        ({"llama__block_count": 3}, "missing: layers.2.attn_norm"),
        ({"llama__block_count": 1}, "extra: blk.1."),
        ({"llama__block_count": 2**31}, "missing: layers.2.attn_norm"),
        ({"llama__attention__key_length": 16, "llama__rope__dimension_count": 16}, "wrong shape"),
    ],
)
def test_a_file_that_is_no_such_model_is_refused_with_what_it_has(tmp_path, changes, problem):
    with pytest.raises(KinaError) as caught:
        Llama.open(write_llama(tmp_path / "m.gguf", changes=changes))
    assert problem in str(caught.value)


# ---------------------------------------------------------------- the real model


PROMPTS = (
    "What is the capital of France?", "Write a haiku about the sea.", "2 + 2 =", "List three colours.",
    "Explain photosynthesis in one sentence.", "Who wrote Hamlet?", "Translate 'good morning' to Spanish.",
    "What do bees make?", "def add(a, b):", "Name a large planet.",
)  # fmt: skip
TEXT = "A shape error in a tensor program is rarely loud: two axes change places, and the program runs on. " * 12


@needs_model
def test_smollm2_agrees_with_numpy_on_a_long_prompt_and_on_ten_continuations():
    llama, numpy = Llama.open(PATH), NumpyLlama(PATH)
    ids = llama.encode(TEXT)[:200]
    assert len(ids) == 200
    np.testing.assert_allclose(forward(llama, ids), numpy.logits(ids)[-1], rtol=0, atol=1e-3)
    for prompt in PROMPTS:
        ids = llama.encode(f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n")
        agrees_greedily(numpy, ids, greedy(llama, ids, 10))
    assert llama.module.step.compilations == 1
