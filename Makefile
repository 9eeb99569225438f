# `make demo` and `make test` set up everything they need in this checkout: nothing but Python (3.11 or
# newer), make and git has to be there. Choose the interpreter with PYTHON=..., pass options to pytest
# with ARGS=..., shorten the bench with QUICK=1.

VENV := .venv
PY := $(VENV)/bin/python
READY := $(VENV)/.ready
ARGS ?=
export PYTHON

.PHONY: help setup demo test golden torch-test bench comparison lint format lock clean
.DEFAULT_GOAL := help

help: ## Show what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## Make .venv with the pinned dependencies and Kina

demo: $(READY) ## Check and run a transformer block of a real language model, then let the whole model answer
	@$(PY) examples/demo.py

test: $(READY) ## Run the tests
	$(PY) -m pytest -n 2 $(ARGS)

golden: $(READY) ## Update the golden files from what the compiler says today
	$(PY) -m pytest -n 2 --update-golden $(ARGS)

torch-test: .venv-torch/.ready ## Run the tests that need PyTorch (and the host boundary's) in .venv-torch
	.venv-torch/bin/python -m pytest -m "" tests/torch tests/host $(ARGS)

bench: .venv-bench/.ready ## Measure Kina beside its peers and the machine's limits, in .venv-bench
	@.venv-bench/bin/python benchmarks/run.py $(if $(QUICK),--quick) $(ARGS)

comparison: .venv-comparison/.ready ## Run other shape checkers on the programs of docs/comparison, in .venv-comparison
	@.venv-comparison/bin/python docs/comparison/run.py $(ARGS)

lint: $(READY) ## Check style and types
	$(PY) -m ruff check .
	$(PY) -m mypy
	$(PY) -m mypy examples benchmarks

format: $(READY) ## Sort imports and mend what ruff can mend
	$(PY) -m ruff check --fix .

lock: $(READY) ## Pin the newest versions of all dependencies in requirements.lock
	$(PY) -m pip install --quiet "uv>=0.9"
	$(PY) -m uv pip compile --quiet --upgrade --universal --fork-strategy fewest --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --no-annotate --no-header --extra dev pyproject.toml \
	  --output-file requirements.lock

clean: ## Remove environments, caches and results
	rm -rf .venv .venv-torch .venv-bench .venv-comparison .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): requirements.lock pyproject.toml tools/venv.sh
	@tools/venv.sh $(VENV)
	@touch $@

.venv-torch/.ready: requirements.lock pyproject.toml tests/torch/requirements.txt tools/venv.sh
	@tools/venv.sh .venv-torch tests/torch/requirements.txt
	@touch $@

.venv-bench/.ready: requirements.lock pyproject.toml benchmarks/requirements.txt tools/venv.sh
	@tools/venv.sh .venv-bench benchmarks/requirements.txt
	@touch $@

.venv-comparison/.ready: requirements.lock pyproject.toml docs/comparison/requirements.txt tools/venv.sh
	@tools/venv.sh .venv-comparison docs/comparison/requirements.txt
	@touch $@
