# Two commands matter: `make demo` shows it working, `make test` proves it.
# Needed: Python 3.11 or newer, git, make; the tests also need Node 20 and chromium.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# Without bytecode every start of a process compiles everything again, for more than half a second.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest

.PHONY: help demo test check format bench soak clean

help: ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | column -t -s "$$(printf '\t')"

demo: $(VENV)/.demo ## install, fetch the embedded model, execute the quickstart, write HTML
	$(BIN)/subagents-nb local-model install
	$(BIN)/python notebooks/demo.py

test: check ## everything: unit, integration, crash, notebook, browser
	$(BIN)/subagents-nb local-model install
	$(PYTEST) tests
	$(PYTEST) -p nbval -p no:randomly --nbval-lax notebooks

check: $(VENV)/.dev widgets/node_modules/.ready ## format, lint, types, import contracts, JavaScript types
	$(BIN)/ruff format --check subagents_nb tests benchmarks notebooks/*.py
	$(BIN)/ruff check subagents_nb tests benchmarks notebooks/*.py
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	npm --prefix widgets run --silent check

format: $(VENV)/.dev ## format and mend what can be mended
	$(BIN)/ruff format subagents_nb tests benchmarks notebooks/*.py
	$(BIN)/ruff check --fix subagents_nb tests benchmarks notebooks/*.py

bench: $(VENV)/.dev ## measure the budgets against a model on loopback
	$(BIN)/python -m benchmarks

clean: ## remove what the commands above made
	rm -rf $(VENV) widgets/node_modules tests/peers/node_modules build dist .pytest_cache .mypy_cache .ruff_cache

$(VENV)/bin/python:
	bash .ci/venv $(VENV)

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[local]' --group demo
	touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml
	bash .ci/tools
	$(BIN)/python -m pip install --quiet --editable '.[local]' --group dev
	touch $@

widgets/node_modules/.ready: widgets/package-lock.json $(VENV)/.dev
	npm ci --prefix widgets --no-audit --no-fund --silent
	touch $@
