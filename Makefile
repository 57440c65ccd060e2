# The project's commands. Everything runs in .venv, which `make setup` builds with Python 3.11+ and pip alone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Data sets are read from $SEQLAB_DATA; a checkout that has ../shared/data beside it uses that.
ifneq ($(wildcard ../shared/data/README.md),)
export SEQLAB_DATA ?= $(abspath ../shared/data)
endif
JOBS ?= 2
# How long `make fuzz` damages text files.
FUZZ_SECONDS ?= 300

.PHONY: setup demo test lint fuzz bench reproduce docs clean

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml requirements/dev.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	touch $@

demo: setup
	$(BIN)/python -m seqlab.cli demo

# Each worker begins with one half of the files, so that few kernels are compiled twice.
test: setup
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(ARGS)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fuzz: setup
	$(BIN)/python tests/fuzz_models.py
	$(BIN)/python tests/fuzz_readers.py $(FUZZ_SECONDS)
	$(BIN)/python tests/fuzz_signals.py

bench: setup
	$(BIN)/python benchmarks/run.py

reproduce: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m seqlab.cli reproduce $(ARGS)

docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean:
	rm -rf $(VENV) build dist site .pytest_cache .mypy_cache .ruff_cache
	find src -name "*.nb[ic]" -delete
