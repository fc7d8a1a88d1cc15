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

.PHONY: help demo test check map format docs bench bench-peers peers-folder soak clean

help: ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | column -t -s "$$(printf '\t')"

demo: $(VENV)/.demo ## install, fetch the embedded model, execute the quickstart, write HTML
	$(BIN)/subagents-nb local-model install
	$(BIN)/python notebooks/demo.py

# The tests wait more than they work, for processes, clocks and pages.
LANES ?= 4

# The types take as long as all other checks together, so they are checked beside the first tests and told at the end.
test: $(VENV)/.dev widgets/node_modules/.ready ## everything: all of check; unit, integration, crash, notebook, browser
	@$(TOGETHER) compiled $(QUICK_CHECKS)
	$(BIN)/subagents-nb local-model install
	@$(BIN)/mypy >build/types.txt 2>&1 & types=$$!; suite=0; \
	  $(PYTEST) --numprocesses=$(LANES) tests || suite=$$?; \
	  wait $$types || { cat build/types.txt >&2; echo "The types are wrong: see above." >&2; exit 1; }; exit $$suite

# The types take half of the time of all, so they begin first and the rest stands beside them.
QUICK_CHECKS := check-style check-imports check-house check-map check-widgets
CHECKS := check-types $(QUICK_CHECKS)
.PHONY: $(CHECKS)
TOGETHER = $(MAKE) --no-print-directory --jobs=2 $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

check: $(VENV)/.dev widgets/node_modules/.ready ## format, lint, types, import contracts, JavaScript types
	@$(TOGETHER) $(CHECKS)

# Once, and not in each lane at the same time: pytest compiles all tests with asserts that tell what they compared.
.PHONY: compiled
compiled:
	@mkdir -p build
	$(BIN)/python -m compileall -q subagents_nb
	$(PYTEST) -q --collect-only tests >build/collected.txt || { tail -40 build/collected.txt >&2; exit 1; }

check-types:
	$(BIN)/mypy

check-style:
	$(BIN)/ruff format --check subagents_nb tests benchmarks .ci notebooks/*.py
	$(BIN)/ruff check subagents_nb tests benchmarks .ci notebooks/*.py

check-imports:
	$(BIN)/lint-imports --no-logo

check-house:
	$(BIN)/python .ci/house.py

check-map:
	$(BIN)/python .ci/map.py --check

check-widgets:
	npm --prefix widgets run --silent check

map: ## draw the map in CONTRIBUTING.md anew
	python3 .ci/map.py

docs: build/docs-venv/.ready ## the documentation as a site in build/site, to be read without a network
	build/docs-venv/bin/python .ci/site.py

build/docs-venv/.ready: pyproject.toml
	python3 -m venv build/docs-venv
	build/docs-venv/bin/python -m pip install --quiet --editable . --group docs
	touch $@

format: $(VENV)/.dev ## format and mend what can be mended
	$(BIN)/ruff format subagents_nb tests benchmarks .ci notebooks/*.py
	$(BIN)/ruff check --fix subagents_nb tests benchmarks .ci notebooks/*.py

bench: $(VENV)/.dev ## measure the budgets against a model on loopback
	$(BIN)/python -m benchmarks

# A folder with drive_peer.py, which drives the peers; it is not part of this repository.
PEERS ?= ../shared/peers

bench-peers: peers-folder build/peers/.ready $(VENV)/.dev ## measure dm and pi beside us (PEERS=folder of drive_peer.py)
	$(BIN)/python -m benchmarks.peers --peers "$(PEERS)" --cache build/peers $(BENCH)

peers-folder:
	@test -f "$(PEERS)/drive_peer.py" || { echo "There is no drive_peer.py in $(PEERS). Name its folder:" \
	  "make bench-peers PEERS=FOLDER" >&2; exit 1; }

build/peers/.ready: benchmarks/install_peers
	bash benchmarks/install_peers build/peers

MINUTES ?= 10

soak: $(VENV)/.dev ## rare races: the fault matrix with long rounds, 10,000 policies, then chaos for MINUTES=10
	SOAK=1 $(PYTEST) -s tests/crash tests/widgets/test_reload_in_lab.py
	POLICY_CASES=10000 $(PYTEST) --timeout=3600 tests/unit/domain/test_policy.py tests/unit/planning/test_narrowing.py
	SOAK=1 SOAK_SECONDS=$$(( $(MINUTES) * 60 )) $(PYTEST) -s tests/soak/soak_*.py

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
	# Each release pins the pydantic-ai of its day. Evaluators, which is all that is used of it, need none of that.
	$(BIN)/python -m pip install --quiet --no-deps 'pydantic-evals>=2.60,<3'
	touch $@

widgets/node_modules/.ready: widgets/package-lock.json $(VENV)/.dev
	npm ci --prefix widgets --no-audit --no-fund --silent
	touch $@
