#!/usr/bin/env bash
# Makes a virtual environment that holds the pinned dependencies and this project, editable.
#
#   tools/venv.sh DIRECTORY [REQUIREMENTS...]
#
# Every package of requirements.lock is checked against its hash. Further requirement files are
# installed after it. The environment is made anew where one of the files has changed; PYTHON
# names the interpreter, otherwise the first suitable one on the path is taken.
set -euo pipefail

venv=$1
shift
oldest="3.11"

suitable() { "$1" -c "import sys; sys.exit(sys.version_info < (${oldest/./, }))" 2>/dev/null; }

find_python() {
  if [ -n "${PYTHON:-}" ]; then
    suitable "$PYTHON" && echo "$PYTHON" && return
    echo "error: PYTHON=$PYTHON is not a Python of version $oldest or newer" >&2
    return 1
  fi
  for candidate in python3 python3.14 python3.13 python3.12 python3.11 python; do
    suitable "$candidate" && echo "$candidate" && return
  done
  echo "error: no Python of version $oldest or newer was found; found: $(python3 --version 2>&1 || true)" >&2
  echo "help: install one, or name it: make PYTHON=/path/to/python3" >&2
  return 1
}

# Shows which package pip has come to, and its whole output where it fails.
install() {
  local log="$venv/setup.log" terminal=0
  [ -t 1 ] && terminal=1
  if "$venv/bin/python" -m pip install --disable-pip-version-check --progress-bar off "$@" 2>&1 | tee "$log" |
    awk -v terminal="$terminal" '
      terminal && $1 == "Collecting" { printf "\r\033[K  %d packages: %s", ++count, $2; fflush() }
      terminal && $1 == "Installing" { printf "\r\033[K  %d packages: installing", count; fflush() }
      END { if (terminal) printf "\r\033[K" }'; then
    return
  fi
  tail -n 20 "$log" >&2
  echo "error: pip could not install into $venv (above: the end of $log); is the package registry reachable?" >&2
  return 1
}

python=$(find_python)
if ! "$python" -c "import ensurepip, venv" 2>/dev/null; then
  echo "error: $python has no module venv (or no ensurepip)" >&2
  echo "help: on Debian and Ubuntu it is the package python3-venv" >&2
  exit 1
fi

wanted=$(cat requirements.lock "$@" /dev/null; "$python" --version)
if [ "$wanted" != "$(cat "$venv/wanted" 2>/dev/null)" ]; then
  started=$SECONDS
  echo "Setting up $venv, once: $(grep -c == requirements.lock) pinned packages and this project; takes a minute or two ..."
  "$python" -m venv --clear "$venv"
  install --require-hashes --requirement requirements.lock
  for requirements in "$@"; do
    echo "  adding $requirements ..."
    install --requirement "$requirements"
  done
  echo "$wanted" > "$venv/wanted"
  echo "  done in $((SECONDS - started)) s"
fi
install --no-deps --no-build-isolation --editable .
# So that the first run is as quick as later ones, also where Python is told to write no bytecode.
"$venv/bin/python" -m compileall -q src
