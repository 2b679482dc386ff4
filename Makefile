# Everything is run from here, by people and by CI alike. `make` alone lists what there is.
.DEFAULT_GOAL := help
SHELL := /bin/sh
.DELETE_ON_ERROR:
.PHONY: help setup serve test check stress chaos controls coverage guards format docs site screenshots bench lighthouse audit lock clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check --no-input --quiet
INSTALL := $(PIP) install --no-deps --require-hashes
# A maintainer's own indexes and wheel folders must not show in the locks.
COMPILE := cd requirements && PIP_CONFIG_FILE=/dev/null PIP_FIND_LINKS= PIP_INDEX_URL= PIP_EXTRA_INDEX_URL= \
	CUSTOM_COMPILE_COMMAND="make lock" ../$(BIN)/pip-compile --quiet --upgrade --generate-hashes --allow-unsafe \
	--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --strip-extras
# A file stays in one process: its tests share servers. tests/support/scheduling.py says which files stay together;
# the longest come first.
PYTEST := $(BIN)/pytest --numprocesses auto --dist loadfile --no-loadscope-reorder
# Tests start many processes. Each of them would compile all of the source.
unexport PYTHONDONTWRITEBYTECODE
ARGS ?=
SITE ?= dist/site
SBOM ?= dist/sbom.cdx.json
SEED ?= 1
MINUTES ?= 1.5
NPM_TOOLS := $(VENV)/openapi-tools

help: ## List the commands
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 20

setup: $(VENV)/.base ## Make .venv with everything the product needs; the command is then .venv/bin/holdfast

serve: $(VENV)/.base ## Run Holdfast with a demo project on its embedded database (ARGS="--port 9000" adds options)
	@exec $(BIN)/holdfast serve --demo $(ARGS)

test: $(VENV)/.dev $(VENV)/.npm ## Run the tests that are not slow (ARGS="tests/domain -x" chooses)
	$(PYTEST) -m "not slow and not control" $(ARGS)

check: $(VENV)/.dev $(VENV)/.npm ## All that CI runs: lint, format, types, import rules, all tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(PYTEST) -m "not control" $(ARGS)

stress: ## Run `make test` five times beside four busy loops
	@set -e; loops=; trap 'kill $$loops' EXIT; trap 'exit 130' INT TERM HUP; \
	for loop in 1 2 3 4; do (while :; do :; done) & loops="$$loops $$!"; done; \
	for run in 1 2 3 4 5; do echo "Run $$run of 5"; $(MAKE) --no-print-directory test; done

chaos: $(VENV)/.dev ## Break a deployment on this machine and check that nothing is lost (SEED=7 MINUTES=1.5; needs root)
	@$(BIN)/python -m tests.chaos --seed $(SEED) --minutes $(MINUTES) $(ARGS)

controls: $(VENV)/.dev ## Break the code on purpose, five times, and see whether `make chaos` notices
	$(BIN)/pytest --numprocesses 2 -m control tests/chaos $(ARGS)

coverage: $(VENV)/.dev $(VENV)/.npm ## Measure which branches `make test` runs (COVERED=all: `make check`)
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(subst $(BIN)/pytest,,$(PYTEST)) -m "not control$(if $(filter all,$(COVERED)),, and not slow)" $(ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --format=total
	@for package in domain operations storage webhooks; do \
		echo "$$package $$($(BIN)/coverage report --format=total --include="src/holdfast/$$package/*") %"; done

guards: $(VENV)/.dev ## Disable guards at random and see whether a test fails (ARGS="--seed 1 --count 30")
	$(BIN)/python -m tests.guards $(ARGS)

format: $(VENV)/.dev ## Format the code, with the fixes that ruff can make
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.dev ## Regenerate the generated pages of docs/
	$(BIN)/python docs/_site/state_machine.py
	$(BIN)/python docs/_site/reliability.py

site: $(VENV)/.dev ## Build the documents as a site into dist/site
	$(BIN)/python -m sphinx -q --fail-on-warning --keep-going --fresh-env -d $(SITE)-cache -c docs . $(SITE)

screenshots: $(VENV)/.dev ## Take a screenshot of every page into dist/screenshots (needs Chromium)
	$(BIN)/python -m tests.browser.screenshots $(ARGS)

bench: $(VENV)/.bench $(VENV)/.dev ## Measure against the peers; writes benchmarks/results (needs wrk and Chromium)
	$(BIN)/python -m benchmarks $(ARGS)

lighthouse: $(VENV)/.bench $(VENV)/.lighthouse ## Rate the buyers' pages with Lighthouse (needs Chromium and Node.js)
	$(BIN)/python -m benchmarks.lighthouse $(ARGS)

audit: $(VENV)/.audit ## Write the SBOM to dist/sbom.cdx.json and look for advisories against what is locked
	@$(BIN)/python requirements/audit.py $(SBOM) $(ARGS)

lock: $(VENV)/.dev ## Update requirements/*.txt to the newest versions
	$(COMPILE) --output-file base.txt base.in
	$(COMPILE) --output-file dev.txt dev.in
	$(COMPILE) --output-file bench.txt bench.in
	$(COMPILE) --output-file audit.txt audit.in

clean: ## Remove .venv and caches (never the data directory)
	rm -rf $(VENV) dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .schemathesis sdk/python/.ruff_cache
	find src tests benchmarks sdk -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "Holdfast needs Python 3.11 or newer as $(PYTHON); name another with: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) lacks the venv module; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@echo "Making $(VENV); this takes a minute, once."
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.base: requirements/base.txt pyproject.toml | $(BIN)/python
	@$(INSTALL) --requirement requirements/base.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.base
	@$(INSTALL) --requirement requirements/dev.txt
	@touch $@

$(VENV)/.bench: requirements/bench.txt $(VENV)/.base
	@$(INSTALL) --requirement requirements/bench.txt
	@touch $@

$(VENV)/.audit: requirements/audit.txt $(VENV)/.base
	@$(INSTALL) --requirement requirements/audit.txt
	@touch $@

$(VENV)/.lighthouse: $(addprefix benchmarks/lighthouse/,package.json package-lock.json .npmrc) | $(BIN)/python
	@rm -rf $(VENV)/lighthouse && mkdir $(VENV)/lighthouse && cp $^ $(VENV)/lighthouse
	@npm ci --prefix $(VENV)/lighthouse --loglevel error >/dev/null && touch $@

# Without npm, or without its registry, the tests that need these tools are skipped and say so.
$(VENV)/.npm: tests/openapi/package.json tests/openapi/package-lock.json tests/openapi/.npmrc | $(BIN)/python
	@rm -rf $(NPM_TOOLS) && mkdir $(NPM_TOOLS) && cp $^ $(NPM_TOOLS)
	@if npm ci --prefix $(NPM_TOOLS) --loglevel error >/dev/null; then touch $@; \
		else echo "The npm tools of tests/openapi are not installed." >&2; fi
