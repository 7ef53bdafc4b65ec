# The commands of every day; CONTRIBUTING.md lists them, with the longer ones. In a fresh clone each target first installs
# what it needs. PYTHON=python3.13 picks the interpreter of a new .venv; ARGS="..." reaches pytest, the demo, the benchmarks.

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
# Python compiles a module when it first imports it; most modules of the libraries are never imported.
PIP := $(PY) -m pip install --quiet --disable-pip-version-check --no-compile
BUILD_REQUIRES := $(shell sed -n '/^requires = /{s/.*\[//; s/\]//; s/", "/" "/g; p}' pyproject.toml)
# The prefix of commands that compute and seldom wait: `make test` lowers their priority.
NICE :=

# The simulator is installed as a plugin is. Plugins with kernels of their own have a setup.py.
PLUGINS := simulator $(patsubst %/pyproject.toml,%,$(wildcard plugins/*/pyproject.toml))
COMPILED_PLUGINS := $(patsubst %/setup.py,%,$(wildcard plugins/*/setup.py))
PLUGIN_PATH := $(subst $() ,:,$(addprefix $(CURDIR)/,$(PLUGINS)))
KERNEL_SOURCES := $(shell find kframe plugins/*/kframe_* -name '*.pyx' -o -name '*.pxd')
KERNEL_MODULES := $(shell find kframe plugins/*/kframe_* -name '_*.pyx' | sed 's|plugins/[^/]*/||; s|/|.|g; s|[.]pyx$$||')

TESTS := tests simulator plugins benchmarks/suite
# Benches check their answers in tests; `pytest benchmarks` times them.
PYTEST := $(PY) -m pytest -c pyproject.toml -p no:cacheprovider --benchmark-disable
# ARGS may select no test of a target: pytest then exits with 5.
ALLOW_NO_TESTS = $(if $(ARGS),|| [ $$? = 5 ])
SERVERLESS := not real and not extended
# Tests without servers in parts of similar duration, each one process: each worker of pytest-xdist would import all files.
PARTS := others commands decisions metadata
FOLDERS.commands := tests/architecture tests/cli tests/docs
FOLDERS.decisions := tests/core tests/plans tests/whatif
FOLDERS.metadata := tests/kraft tests/registry tests/scenario tests/snapshot tests/spark
FOLDERS.others := $(filter-out tests/__pycache__ $(foreach part,$(PARTS),$(FOLDERS.$(part))), \
	$(patsubst %/,%,$(wildcard tests/*/))) $(filter-out tests,$(TESTS))
TEST_PARTS := $(addprefix part-,$(PARTS))

# The debug build comes before the source tree in sys.path; PYTHONSAFEPATH stops python -m from adding the tree first.
DEBUG_LIB := $(CURDIR)/build/debug/lib
DEBUG_ENV := KFRAME_DEBUG=1 PYTHONSAFEPATH=1 PYTHONPATH=$(DEBUG_LIB) HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-brief}

.DELETE_ON_ERROR:
.PHONY: setup demo demo-kraft test test-all test-serverless test-servers test-debug $(TEST_PARTS) debug-kernels check \
	check-types check-style bench bench-compare docs reference dist clean
# Variables of the caller's shell must not change the release build, nor let each process compile all modules again.
unexport KFRAME_DEBUG KFRAME_SANITIZE PYTHONDONTWRITEBYTECODE

# A second make, because the first would not see that the installation has built the kernels already.
setup: $(VENV)/.installed
	@$(MAKE) --no-print-directory build/release/.built

demo: setup
	$(VENV)/bin/kframe demo $(ARGS)
demo-kraft: setup
	$(PY) -m verification.kraft.demo

# Four targets at a time on two cores, the longest first; each prints its output when it is done. Servers depend on
# timeouts and mostly wait, so their tests have a higher priority than what computes.
test: setup
	@$(MAKE) --no-print-directory -j4 --output-sync=target NICE="nice -n 10" SERVERLESS='$(SERVERLESS) and not kernel' \
		test-servers test-debug $(TEST_PARTS) check-types check-style

# The whole record is of one commit: a commit that changes no file outside docs/evidence continues it.
test-all: check debug-kernels
	$(PY) -m tests.all_tests --out docs/evidence/tests.json $(ARGS)

# With ARGS all tests that it names, extended ones too.
test-serverless: setup
ifdef ARGS
	$(PYTEST) -n 2 --dist worksteal -m 'not real' $(ARGS) $(ALLOW_NO_TESTS)
else
	@$(MAKE) --no-print-directory -j2 --output-sync=target $(TEST_PARTS)
endif

$(TEST_PARTS): part-%: setup
	$(NICE) $(PYTEST) -m '$(SERVERLESS)' $(FOLDERS.$*)

# With ARGS all tests with servers that it names.
test-servers: setup
	$(PYTEST) -m '$(if $(ARGS),real,smoke and not extended)' --durations=10 $(or $(ARGS),$(TESTS)) $(ALLOW_NO_TESTS)

# Tests of kernels and decoders, on kernels that check each access. ARGS may name tests without the mark.
test-debug: debug-kernels
	$(DEBUG_ENV) $(NICE) $(PYTEST) -m '$(if $(ARGS),not real,kernel and not real and not extended)' $(or $(ARGS),$(TESTS)) \
		$(ALLOW_NO_TESTS)

# Copies all Python files again, so that the copy has no deleted module.
debug-kernels: setup build/debug/.settings
	@if [ -d $(DEBUG_LIB) ]; then find $(DEBUG_LIB) -name '*.py' -delete; fi
	@set -e; for folder in . $(COMPILED_PLUGINS); do echo "debug build of $$folder"; \
		(cd $$folder && KFRAME_DEBUG=1 $(NICE) $(CURDIR)/$(PY) setup.py --quiet build --build-lib $(DEBUG_LIB)); done

# Installed code is also checked for the newest Python; stubs of libraries may not support older ones.
check: setup
	@$(MAKE) --no-print-directory -j2 --output-sync=target --keep-going check-types check-style
	$(PY) -m mypy --python-version 3.14 kframe simulator/kframe_simulator

# All plugins share a cache, so that mypy reads kframe once. The tree has another: its tests have the same module names.
check-types: setup
	$(NICE) $(PY) -m mypy
	@set -e; for plugin in $(filter plugins/%,$(PLUGINS)); do echo "mypy $$plugin"; \
		MYPYPATH="$(PLUGIN_PATH)" $(NICE) $(PY) -m mypy --cache-dir .mypy_cache/plugins $$plugin verification; done
	$(NICE) $(PY) -m mypy.stubtest --mypy-config-file pyproject.toml $(KERNEL_MODULES)

check-style: setup
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(NICE) cython-lint $(KERNEL_SOURCES)
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(VENV)/bin/lint-imports

bench: setup
	$(PY) -m benchmarks $(ARGS)

bench-compare: setup
	$(PY) -m benchmarks.report.compare $(ARGS)

# Writes build/docs/index.html. A warning of Sphinx is an error. ARGS="--fresh-env" reads all pages again.
docs: setup
	$(PY) -m sphinx -W --keep-going --quiet --builder html $(ARGS) docs build/docs

# The generated parts of docs/reference. A test compares them.
reference: setup
	$(PY) -m docs.generate.reference

# Wheels and source distributions in dist/, installed without a compiler. ARGS="--python python3.12" builds for that alone.
dist: setup
	$(PY) -m tests.packaging.distributions $(ARGS)

clean:
	rm -rf build dist .benchmarks .hypothesis .*_cache $(addsuffix /build,$(COMPILED_PLUGINS))
	find kframe plugins -name '*.so' -delete
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

# The distributions share one installation of their build requirements, instead of an isolated one each. pip uses one
# core, so the kernels are compiled meanwhile.
$(VENV)/.installed: pyproject.toml $(addsuffix /pyproject.toml,$(PLUGINS))
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("kframe needs Python 3.11 or newer; make PYTHON=...")'
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@echo "Installing kframe, its plugins and the tools into $(VENV); the first time takes some minutes, without output."
	$(PIP) $(BUILD_REQUIRES)
	@$(MAKE) --no-print-directory build/release/.built & \
		KFRAME_COMPILE=0 $(PIP) --no-build-isolation -e '.[dev]' $(addprefix -e ./,$(PLUGINS)) && wait $$!
	@touch $@

build/release/.built: build/release/.settings $(KERNEL_SOURCES) $(wildcard kframe/plugin/*.h)
	@set -e; for folder in . $(COMPILED_PLUGINS); do \
		(cd $$folder && $(CURDIR)/$(PY) setup.py --quiet build_ext --inplace); done
	@touch $@

build/%/.settings: setup.py kframe_build.py
	@rm -rf build/$*
	@mkdir -p build/$*
	@touch $@
