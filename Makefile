# Two commands on a machine with Python >= 3.11, make and pip:  make demo   make test
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check --quiet --constraint constraints.txt
# One thread a process: the test runner starts one process a core.
SINGLE := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

# What needs nothing that is newer than the oldest versions.
OLD_TESTS := $(addprefix tests/,core inject data strategies tasks training estimators reports cli)

.PHONY: help demo quick test library nightly docs oldest lint bench clean

help:
	@echo "make demo   train a network on broken data, as they came and repaired, write sacm-demo/"
	@echo "make quick  the tests of daily work: without slow ones and the compiler"
	@echo "make test   run every test but the nightly ones"
	@echo "make library  the tests of the library, with the laboratory (sacm_lab) hidden"
	@echo "make nightly  what takes long: attached networks trained and compiled, kills, exports"
	@echo "make docs   build the documentation in site/, with warnings as errors"
	@echo "make oldest run most tests with the oldest versions of everything but torch"
	@echo "make lint   ruff and mypy"
	@echo "make bench  speed and memory, as ratios"

demo: $(VENV)/.ready-to-train
	$(BIN)/sacm demo

quick: $(VENV)/.ready-to-develop
	$(SINGLE) $(BIN)/python -m pytest --numprocesses auto --dist worksteal -m "not slow and not compile and not nightly"

test: $(VENV)/.ready-to-develop
	$(SINGLE) $(BIN)/python -m pytest --numprocesses auto --dist worksteal

library: $(VENV)/.ready-to-develop
	PYTHONPATH=tests/without_lab $(SINGLE) $(BIN)/python -m pytest --numprocesses auto --dist worksteal

nightly: $(VENV)/.ready-to-develop
	$(SINGLE) $(BIN)/python -m pytest --numprocesses auto --dist worksteal -m nightly

docs: $(VENV)/.ready-to-develop
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

oldest:
	@$(PYTHON) -m venv .venv-oldest
	@.venv-oldest/bin/python -m pip install --disable-pip-version-check --quiet --constraint constraints-oldest.txt \
		--editable '.[train]' pytest pytest-timeout pytest-xdist hypothesis polars psutil
	$(SINGLE) .venv-oldest/bin/python -m pytest -W ignore --override-ini filterwarnings=default \
		--numprocesses auto --dist worksteal $(OLD_TESTS)

lint: $(VENV)/.ready-to-develop
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(VENV)/.ready-to-develop
	$(BIN)/python -m benchmarks

$(VENV)/bin/python:
	@echo "Making a virtual environment in $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "sacm needs Python 3.11 or newer; name one with make PYTHON=…")'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.ready-to-train: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing sacm with what training needs (the first time takes a few minutes)"
	@$(PIP) --editable '.[train]'
	@touch $@

$(VENV)/.ready-to-develop: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing sacm with everything the tests need (the first time takes a few minutes)"
	@$(PIP) --editable '.[train,integrations,dev,docs]'
	@touch $@ $(VENV)/.ready-to-train

clean:
	rm -rf site $(VENV) .venv-oldest .pytest_cache .mypy_cache .ruff_cache
