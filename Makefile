# Everything runs in .venv, which `make setup` fills with pinned versions. PYTHON names another interpreter.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest -q
COMPILED := $(VENV)/compiled
# Two of them may wait for clusters while the others compute.
WORKERS := 5
# The packages bench and release.
TOOLS := PYTHONPATH=$(CURDIR)/.ci
# Tests of what is compiled.
PURE_TESTS := $(addprefix tests/dissectors/,tcp decode rows remoting/framing remoting/fastjson \
  remoting/messages remoting/ids \
  remoting/bodies/test_messages.py remoting/bodies/test_registry.py remoting/test_headers.py \
  remoting/test_header_codec.py) tests/fuzz/test_reach.py
HOT := $(shell sed -n 's/^    "\([a-z]*\/.*\.py\)",$$/\1/p' setup.py)

# Bytecode is written: without it each of hundreds of processes compiles all sources again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup compile pure demo test test-all test-fast test-without-tools explore lint types bytecode bench soak samples audit docs pictures dist reproducible sbom installers image-steps image-lint fuzz clean

help:  ## show the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 28

setup: $(VENV)/installed compile  ## install everything into .venv, compile the decode path

PIP := -m pip install --quiet --disable-pip-version-check
# What is built from sources is built by the pinned tools.
$(VENV)/installed: requirements.txt requirements-build.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) --require-hashes -r requirements-build.txt
	$(BIN)/python $(PIP) --require-hashes --no-build-isolation -r requirements.txt
	$(BIN)/python $(PIP) --no-deps --no-build-isolation --editable .
	touch $@

compile: $(COMPILED)  ## compile the decode path with mypyc, where there is a C compiler

$(COMPILED): $(VENV)/installed setup.py $(HOT)
	@if command -v cc >/dev/null 2>&1; then \
	  echo "compiling the decode path (a few minutes)"; \
	  RMQTOOL_COMPILE=1 $(BIN)/python setup.py --quiet build_ext --inplace; \
	else \
	  echo "no C compiler: the decode path runs as plain Python, three times slower"; \
	fi
	@touch $@

pure:  ## remove what was compiled
	find dissectors rmqtool -name '*.so' -delete
	rm -rf build $(COMPILED)

demo: setup  ## set up, decode, send, replay, report: a tour over real captures
	@$(BIN)/python -m tests.demo

test: setup  ## lint, type-check, run the tests that need no cluster and take less than ten seconds
	@$(MAKE) --no-print-directory -j 2 lint types bytecode
	$(PYTEST) -n $(WORKERS) -m "not cluster and not extended" tests

test-all: setup  ## lint, type-check, run all tests: real clusters and all of Spark included
	@$(MAKE) --no-print-directory -j 2 lint types bytecode
	status=0; $(PYTEST) -n $(WORKERS) tests || status=1; \
	RMQTOOL_PURE=1 $(PYTEST) -n 2 -m "(examples or plain or not slow) and not tshark" $(PURE_TESTS) \
	  || status=1; exit $$status

UNITS := not cluster and not spark and not tshark and not slow and not commands

test-fast: bytecode  ## run the unit tests that take less than a quarter of a second
	$(PYTEST) -n 2 -m "$(UNITS) and not lengthy" tests

test-without-tools: bytecode  ## run the unit tests with all optional tools hidden
	RMQTOOL_WITHOUT_TOOLS=1 $(PYTEST) -n 3 -m "$(UNITS)" tests

explore: setup  ## try 1,500 random examples of each property, and all samples; what fails becomes an @example
	HYPOTHESIS_PROFILE=explore $(PYTEST) -n 2 -m examples tests

lint: setup  ## style, format, and spelling
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell $$(git ls-files '*.py' '*.md' '*.toml' Makefile)

# All workers collect the tests at the same time: what is compiled before is compiled once.
bytecode: setup
	@$(BIN)/python -m tests.bytecode

types: setup  ## types
	$(BIN)/mypy

bench: setup  ## measure decode, producer, replay and reports against tshark, Java clients, DuckDB, pandas
	$(TOOLS) $(BIN)/python -m bench --check
	$(TOOLS) $(BIN)/python -m bench.decode.jobs --check
	$(TOOLS) $(BIN)/python -m bench.producer
	$(TOOLS) $(BIN)/python -m bench.replay --check
	$(TOOLS) $(BIN)/python -m bench.proxy --check
	$(TOOLS) $(BIN)/python -m bench.watch_rate --check
	RMQTOOL_EXACT_PACE=1 $(PYTEST) tests/cluster/replay/test_replay_pace.py \
	  tests/rmqtool/live/test_command.py
	$(TOOLS) $(BIN)/python -m bench.reports
	$(TOOLS) $(BIN)/python -m bench.reports --small --runs 3

# SOAK=600 makes it ten minutes.
SOAK ?= 3600
soak: setup  ## watch a sandbox for an hour (SOAK seconds): memory growth, CPU next to the broker's
	$(TOOLS) $(BIN)/python -m bench.soak --seconds $(SOAK)

samples: setup  ## record samples/ anew from real clusters and clients
	$(BIN)/python -m tests.cluster record

audit: $(VENV)/audit/installed  ## ask for known vulnerabilities in what is pinned; says where nobody answers
	@$(VENV)/audit/bin/python -m tests.audit

$(VENV)/audit/installed: requirements-audit.txt $(VENV)/installed
	$(PYTHON) -m venv $(VENV)/audit
	$(VENV)/audit/bin/python $(PIP) --require-hashes -r requirements-audit.txt
	touch $@

# mkdocs-material announces its successor on each run: docs/dependencies.md says what that means.
docs: $(VENV)/docs/installed  ## build the site of the documents, strictly: .cache/site/index.html
	NO_MKDOCS_2_WARNING=1 $(VENV)/docs/bin/mkdocs build --strict --quiet
	@echo "the site: .cache/site/index.html"

$(VENV)/docs/installed: requirements-docs.txt
	$(PYTHON) -m venv $(VENV)/docs
	$(VENV)/docs/bin/python $(PIP) --require-hashes -r requirements-docs.txt
	touch $@

pictures: setup  ## make the pictures of the documents anew, from samples, by rich and Chromium
	$(BIN)/python -m tests.documents.pictures --pages
	$(BIN)/python -m tests.documents.screens
	$(BIN)/python -m tests.rmqtool.browse.views.test_app_snapshots

dist: $(VENV)/release/installed  ## build sdist and wheels with every CPython found, test each; into dist/
	$(TOOLS) $(VENV)/release/bin/python -m release dist

reproducible: $(VENV)/release/installed  ## build all packages twice, elsewhere, and compare the bytes
	$(TOOLS) $(VENV)/release/bin/python -m release reproducible

sbom: $(VENV)/release/installed  ## build a wheel and list what its installation consists of (CycloneDX), in dist/
	$(TOOLS) $(VENV)/release/bin/python -m release sbom

installers: $(VENV)/release/installed  ## try pipx, uvx, completion of shells and man pages with a wheel
	$(TOOLS) $(VENV)/release/bin/python -m release installers

image-steps: $(VENV)/release/installed  ## run the steps of the container image file, without a container
	$(TOOLS) $(VENV)/release/bin/python -m release image

image-lint: $(VENV)/release/installed  ## lint the container image file
	$(VENV)/release/bin/hadolint Containerfile

$(VENV)/release/installed: requirements-release.txt
	$(PYTHON) -m venv $(VENV)/release
	$(VENV)/release/bin/python $(PIP) --require-hashes -r requirements-release.txt
	touch $@

fuzz: setup  ## fifteen minutes of coverage-guided fuzzing, all targets
	$(BIN)/python -m tests.fuzz --seconds 900

clean: pure  ## remove everything that make made
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache
