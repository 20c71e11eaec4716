# Every target sets up what it needs: a virtual environment in .venv with the versions of requirements.lock.
#
#   make demo    learn from reactions alone on a small data set, in under two minutes
#   make test    all fast tests, with coverage
#   make lint    style, types, import order, sizes, and the documentation built strictly
#   make docs    the documentation as a site, in site/
#   make bench   the benchmarks
#   make clean   remove everything that make made
#
# PYTHON chooses the interpreter (3.11 to 3.13), WORKERS the number of processes that run tests.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?=
WORKERS ?= 2

BIN := .venv/bin
INSTALLED := .venv/installed

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export NO_MKDOCS_2_WARNING := 1

.PHONY: help demo test lint docs bench clean

help:
	@sed -n 's/^#   //p' Makefile

demo: $(INSTALLED)
	@$(BIN)/tacit demo

# One thread per process: the processes already use every core, and the numbers do not depend on the machine.
test: export OMP_NUM_THREADS := 1
test: $(INSTALLED)
	@$(BIN)/python -m pytest --numprocesses $(WORKERS) --cov

lint: $(INSTALLED)
	@$(BIN)/ruff check
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python tools/sizes.py
	@$(BIN)/mkdocs build --strict --quiet

docs: $(INSTALLED)
	@$(BIN)/mkdocs build --strict
	@echo "Open site/index.html"

bench: $(INSTALLED)
	@for script in benchmarks/*.py; do echo "$$script"; $(BIN)/python "$$script"; done

clean:
	rm -rf .venv build dist site tacit-demo .coverage .coverage.* .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests benchmarks tools -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
	rm -rf src/*.egg-info

# The stamp is written last: an interrupted installation is taken up again.
$(INSTALLED): requirements.lock pyproject.toml
	@python="$(PYTHON)"; \
	suitable='import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))'; \
	for candidate in python3.11 python3.12 python3.13 python3; do \
		if [ -z "$$python" ] && "$$candidate" -c "$$suitable" >/dev/null 2>&1; then python="$$candidate"; fi; \
	done; \
	if [ -z "$$python" ] || ! "$$python" -c "$$suitable"; then \
		echo "tacit needs Python 3.11, 3.12 or 3.13 with venv: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; \
	fi; \
	echo "Installing into .venv (a few minutes the first time) ..."; \
	"$$python" -m venv .venv
	@$(BIN)/python -m pip install -qq --requirement requirements.lock
	@$(BIN)/python -m pip install -qq --no-deps --no-build-isolation --editable .
	@touch $@
