"""Conversations: templates out of files, text out of tokens, and the commands that talk."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from gguf_samples import write_gguf
from real_model import PATH, needs_model
from small_llama import write_llama

from kina import KinaError, cli
from kina.host.gguf_file import open_gguf
from kina.models.chat import render_chat, texts
from kina.models.llama import Llama, Session

pytest.importorskip("tokenizers")
HELLO = [{"role": "user", "content": "the mat"}]


def templated(tmp_path: Path, template: str):
    pytest.importorskip("jinja2")
    tokens = {"tokenizer__ggml__tokens": ["<s>", "</s>"], "tokenizer__ggml__bos_token_id": 0}
    return open_gguf(write_gguf(tmp_path / "t.gguf", {}, tokenizer__chat_template=template, **tokens))


# ---------------------------------------------------------------- templates


def test_a_conversation_is_rendered_by_the_template_of_the_file(tmp_path):
    template = "{{ bos_token }}{% for m in messages %}\n[{{ m.role }}] {{ m['content'] }}\n{% endfor %}\n>"
    file = templated(tmp_path, template)
    assert render_chat(file, HELLO) == "<s>[user] the mat\n>"


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{{ raise_exception('no system here') }}", "refuses this conversation: no system here"),
        ("{% for %}", "the chat template fails: TemplateSyntaxError"),
        ("{{ messages[7].content.x }}", "the chat template fails: UndefinedError"),
        ("{{ ''.__class__.__mro__ }}", "the chat template fails: SecurityError"),
        ("{{ messages.append(1) }}", "the chat template fails: SecurityError"),
        ("{% for i in range(10 ** 9) %}x{% endfor %}", "the chat template fails: OverflowError"),
        ("{{ 1 / 0 }}", "the chat template fails: ZeroDivisionError"),
    ],
)
def test_a_template_is_not_trusted(tmp_path, template, problem):
    with pytest.raises(KinaError, match=problem):
        render_chat(templated(tmp_path, template), HELLO)


def test_a_file_without_a_template_is_said_to_have_none(tmp_path):
    pytest.importorskip("jinja2")
    file = open_gguf(write_gguf(tmp_path / "t.gguf", {}, tokenizer__ggml__tokens=["a"]))
    with pytest.raises(KinaError, match=r"tokenizer\.chat_template is missing"):
        render_chat(file, HELLO)


def test_without_the_library_the_error_says_how_to_get_it(tmp_path, monkeypatch):
    file = open_gguf(write_gguf(tmp_path / "t.gguf", {}, tokenizer__chat_template="x"))
    for name in [name for name in sys.modules if name.partition(".")[0] == "jinja2"] or ["jinja2.sandbox"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(KinaError, match=r"pip install 'kina-lang\[models\]'"):
        render_chat(file, HELLO)


@needs_model
def test_smollm2_s_template_gives_the_prompt_that_it_was_trained_on():
    pytest.importorskip("jinja2")
    system = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
    said = "<|im_start|>user\nthe mat<|im_end|>\n<|im_start|>assistant\n"
    assert render_chat(open_gguf(PATH), HELLO) == system + said


# ---------------------------------------------------------------- tokens as text


def test_characters_come_whole_though_their_bytes_come_one_by_one(tmp_path):
    tokenizer = Llama.open(write_llama(tmp_path / "m.gguf")).tokenizer
    text = "the cat: é, 世, 🙂!"
    ids = tokenizer.encode(text).ids
    pieces = list(texts(tokenizer, iter(ids)))
    assert "".join(pieces) == text
    assert {"é", "世", "🙂"} <= set(pieces)
    assert "".join(texts(tokenizer, iter(ids[:-2]))) == "the cat: é, 世, \N{REPLACEMENT CHARACTER}"


# ---------------------------------------------------------------- the commands


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> str:
    pytest.importorskip("jinja2")
    return str(write_llama(tmp_path_factory.mktemp("talk") / "small.gguf"))


def kina(*arguments: str, input: str | None = None) -> Result:
    @click.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    def door(arguments: tuple[str, ...]) -> None:
        cli.main(list(arguments))

    return CliRunner().invoke(door, ["--", *arguments], input=input)


def answer(model: str, prompt: str, most: int) -> str:
    llama = Llama.open(model)
    return "".join(texts(llama.tokenizer, Session(llama).generate(llama.encode(prompt), most)))


def test_generate_prints_the_answer_and_tells_the_speed_apart(model):
    done = kina("generate", "--model", model, "--max-tokens", "7", "the cat")
    assert done.exit_code == 0, done.output
    assert done.stdout == answer(model, "<start>uthe cat<end><start>", 7) + "\n"
    assert "tokens read in" in done.stderr
    assert "7 written" in done.stderr


def test_a_raw_prompt_is_gone_on_from_and_may_come_from_stdin(model):
    done = kina("generate", "--model", model, "--max-tokens", "5", "--raw", "-", input="the cat")
    assert done.stdout == answer(model, "the cat", 5) + "\n"


def test_a_seed_decides_what_is_drawn(model):
    first, again, other = (
        kina("generate", "--model", model, "--temperature", "1", "--seed", seed, "--max-tokens", "20", "cat").stdout
        for seed in ("1", "1", "2")
    )
    assert first == again != other


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--model", "none.gguf"], "there is no model none.gguf: it is smollm2, or the path"),
        (["--model", "{tmp}"], "a directory, not a GGUF file"),
        (["--model", "{tmp}/text.gguf"], "not a GGUF file"),
        (["--model", "{tmp}/other.gguf"], "a model of the architecture 'qwen2'; known: 'llama'"),
        (["--temperature", "-1"], "-1.0 is not in the range"),
        (["--temperature", "nan"], "it is not a number"),
        (["--max-tokens", "0"], "0 is not in the range"),
    ],
)
def test_what_cannot_be_done_is_said_with_status_2(tmp_path, options, problem):
    (tmp_path / "text.gguf").write_text("once upon a time")
    write_llama(tmp_path / "other.gguf", changes={"general__architecture": "qwen2"})
    done = kina("generate", *(option.format(tmp=tmp_path) for option in options), "hello")
    assert done.exit_code == 2, done.output
    assert problem in done.stderr


def test_a_prompt_that_is_too_long_or_empty_is_refused(model):
    done = kina("generate", "--model", model, "--raw", "x" * 600)
    assert (done.exit_code, "600 tokens, more than the 512" in done.stderr) == (1, True)
    assert "the prompt has no tokens" in kina("generate", "--model", model, "--raw", "").stderr


def test_a_conversation_keeps_what_was_said(model):
    done = kina("chat", "--model", model, "--max-tokens", "4", input="the cat\n\nsat\n")
    assert done.exit_code == 0, done.output
    first = answer(model, "<start>uthe cat<end><start>", 4)
    second = answer(model, f"<start>uthe cat<end><start>a{first}<end><start>usat<end><start>", 4)
    assert done.stdout == f"{first}\n\n{second}\n\n"
    assert done.stderr.count("tokens read in") == 2


def test_an_interrupt_ends_an_answer_and_the_conversation_goes_on(model, monkeypatch):
    from kina.models import llama

    generate, calls = llama.Session.generate, []

    def interrupted(session, ids, *rest):
        calls.append(ids)
        tokens = generate(session, ids, *rest)
        yield next(tokens)
        if len(calls) == 1:
            raise KeyboardInterrupt
        yield from tokens

    monkeypatch.setattr(llama.Session, "generate", interrupted)
    done = kina("chat", "--model", model, "--max-tokens", "3", input="the cat\nsat\n")
    assert done.exit_code == 0, done.output
    assert "[interrupted]" in done.stderr
    assert len(calls) == 2


def test_a_system_message_stands_before_the_conversation(model):
    done = kina("chat", "--model", model, "--system", "on", "--max-tokens", "3", input="mat\n")
    assert done.stdout == answer(model, "<start>son<end><start>umat<end><start>", 3) + "\n\n"


def test_the_text_is_there_before_the_answer_is_complete(model):
    """As a process, with a pipe: the first bytes come while the process still writes."""
    process = subprocess.Popen(
        [sys.executable, "-m", "kina", "generate", "--model", model, "--max-tokens", "400", "--raw", "the"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert isinstance(process.stdout, io.BufferedReader)
    try:
        assert process.stdout.read1(1)
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()
