"""The object cache: what it promises when files are damaged, shared, or cannot be written."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from kina.native.object_cache import ObjectCache, cache_directory, cache_key

PAYLOAD = bytes(range(256)) * 40


@pytest.fixture
def cache(tmp_path: Path) -> ObjectCache:
    return ObjectCache(tmp_path / "objects")


def entry(cache: ObjectCache) -> Path:
    assert cache.directory is not None
    (path,) = cache.directory.iterdir()
    return path


def test_what_is_stored_is_loaded(cache: ObjectCache) -> None:
    assert cache.load("a") is None
    cache.store("a", PAYLOAD)
    assert cache.load("a") == PAYLOAD
    assert cache.load("b") is None


@pytest.mark.parametrize("position", [0, 8, 20, 40, 41, -1])
def test_an_entry_with_one_bit_flipped_counts_as_absent_and_goes(cache: ObjectCache, position: int) -> None:
    cache.store("a", PAYLOAD)
    damaged = bytearray(entry(cache).read_bytes())
    damaged[position] ^= 1
    entry(cache).write_bytes(damaged)
    assert cache.load("a") is None
    assert not list(cache.directory.iterdir()) if cache.directory else False


@pytest.mark.parametrize("length", [0, 5, 39, 40, 100])
def test_a_truncated_entry_counts_as_absent(cache: ObjectCache, length: int) -> None:
    cache.store("a", PAYLOAD)
    entry(cache).write_bytes(entry(cache).read_bytes()[:length])
    assert cache.load("a") is None
    cache.store("a", PAYLOAD)
    assert cache.load("a") == PAYLOAD


def test_a_directory_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = ObjectCache(tmp_path / "file" / "objects")
    cache.store("a", PAYLOAD)
    assert cache.load("a") is None


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    cache = ObjectCache(tmp_path)
    cache.store("a", PAYLOAD)
    assert cache.load("a") is None


def test_writers_and_readers_that_race_never_see_half_an_entry(cache: ObjectCache) -> None:
    wrong: list[object] = []

    def work(number: int) -> None:
        for step in range(60):
            cache.store("shared", bytes([number]) * 50_000)
            seen = cache.load("shared")
            if seen is None or len(set(seen)) != 1 or len(seen) != 50_000:
                wrong.append((number, step))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(list(cache.directory.iterdir())) == 1 if cache.directory else False


def test_the_entries_used_longest_ago_are_evicted(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path, limit=3 * (len(PAYLOAD) + 40))
    for age, key in enumerate(["a", "b", "c"]):
        cache.store(key, PAYLOAD)
        os.utime(tmp_path / f"{key}.kobj", (1000 + age, 1000 + age))
    cache.load("a")  # now the newest
    cache.store("d", PAYLOAD)
    assert [cache.load(key) is not None for key in "abcd"] == [True, False, True, True]


def test_the_key_tells_where_one_part_ends_and_the_next_begins() -> None:
    assert cache_key("ab", "c") != cache_key("a", "bc")


def test_the_environment_chooses_the_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("KINA_CACHE", raising=False)
    monkeypatch.delenv("KINA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_directory() == tmp_path / "xdg" / "kina" / "objects"
    monkeypatch.setenv("KINA_CACHE_DIR", str(tmp_path / "own"))
    assert cache_directory() == tmp_path / "own" / "objects"
    monkeypatch.setenv("KINA_CACHE", "0")
    assert cache_directory() is None
