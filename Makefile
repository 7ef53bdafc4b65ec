# Every command of the project. In a fresh clone each target first installs what it needs. All targets need Python
# 3.11 or newer, a C compiler and make. Tests that start servers also need JDK 17 and Maven.
#
#   make demo     fail brokers of a real and of a million-partition cluster, move partitions, show a failure in a KRaft log
#   make test     all checks, each property and table that needs no server, and a few scenarios with each server
#   make test-all every test but those of matrices, and all checks; continues after an interruption; writes the record
#   make test-replication  every case of the replication matrix on real brokers; hours; writes the record
#   make test-serverless, test-servers, test-debug  some of the tests of `make test`; ARGS selects tests
#   make check    format, lint, types, stubs, layers
#   make fuzz     mutated znodes and frames for every decoder; more cases than in the test suite
#   make sanitize the kernel and fuzz tests on kernels built with AddressSanitizer and UBSan
#   make faults   faults of the network, processes, resources and clocks in a real cluster; writes the record; 45 minutes
#   make soak     an hour of random changes of a real cluster; fits the sizes of the controller; writes the record
#   make linearizability  histories of admin requests under faults, checked by Porcupine; needs Go; writes the record
#   make sim      2,000 simulated clusters with faults; minutes
#   make week     simulated weeks of two clusters; fits the size of the controller
#   make bench    the benchmarks beside their targets, with machine and commit; about 20 minutes
#   make bench-suite    every benchmark at every size up to ten million partitions; writes the record and the page
#   make bench-peers    kframe and Kafka's own controllers in turn; about 27 minutes
#   make bench-fleet    spark failover and a loop of whatif fail; writes the record
#   make limits   kernels beside memory bandwidth, cost by size; writes the records and docs/explanation/performance.md
#   make plots    the plots and tables of docs/explanation/performance.md from the records
#   make bench-compare  the newest ratios that fell by more than 20 %
#   make mutants  500 mutants of the core and 500 of the reference kernels; hours; writes the record
#   make setup    .venv with kframe, its plugins and the tools; compiles changed kernels
#   make docs     the documentation site, in build/docs; a warning of Sphinx is an error
#   make reference  the generated parts of docs/reference, from the commands, keys, documents and docstrings
#   make man      the manual pages, from the commands: docs/man, plugins/*/man and simulator/man
#   make dist     wheels for each installed interpreter and source distributions in dist/; installs them without a compiler
#   make lock     versions and hashes of the tools, in requirements/
#   make sbom     the bill of materials of wheels: ARGS="dist kframe.cdx.json"
#   make audit    known vulnerabilities of dependencies and tools
#   make clean    removes the output of the build and the tools, but not .venv
#
# PYTHON=python3.13 picks the interpreter of a new .venv; ARGS="..." reaches pytest, the demo or the benchmarks.

PYTHON ?= python3
ARGS ?=
SIM_SEEDS ?= 1..2000
SIM_JOBS ?= 2
VENV := .venv
PY := $(VENV)/bin/python
# Python compiles a module when it first imports it; most modules of the libraries are never imported.
PIP := $(PY) -m pip install --quiet --disable-pip-version-check --no-compile

# The types must hold for every Python from that of .venv up to this one. Stubs of libraries may not support
# older ones.
NEWEST_PYTHON := 3.14
# Installed code is also checked for the newest Python; tests and tools run in .venv only.
PRODUCT := kframe simulator/kframe_simulator
# Two at a time, the longest first.
CHECKS := $(addprefix check-,types plugins newest stubs style)

# The simulator is installed as a plugin is.
PLUGINS := simulator $(patsubst %/pyproject.toml,%,$(wildcard plugins/*/pyproject.toml))
# Plugins with kernels of their own have a setup.py beside their pyproject.toml, as kframe has.
COMPILED_PLUGINS := $(patsubst %/setup.py,%,$(wildcard plugins/*/setup.py))
# Plugins' tests may use what other plugins offer for tests.
PLUGIN_PATH := $(subst $() ,:,$(addprefix $(CURDIR)/,$(PLUGINS)))
TESTS := tests simulator plugins benchmarks/suite
# Benches check their answers in tests; `pytest benchmarks` times them.
PYTEST := $(PY) -m pytest -c pyproject.toml -p no:cacheprovider --benchmark-disable
# ARGS may select no test of a target: pytest then exits with 5.
ALLOW_NO_TESTS = $(if $(ARGS),|| [ $$? = 5 ])
# The marks of a test decide where it runs; pyproject.toml describes them. `make test` runs tests of kernels on debug
# kernels only.
SERVERLESS := not real and not extended
# Processes of pytest for tests that compute.
WORKERS ?= 2
# The folders of tests without servers in parts of similar duration. Each part is one process of pytest: workers of
# pytest-xdist would import all test files each, and report each test to a third process.
PARTS := others commands decisions metadata
FOLDERS.commands := tests/architecture tests/cli tests/docs
FOLDERS.decisions := tests/core tests/plans tests/whatif
FOLDERS.metadata := tests/kraft tests/registry tests/scenario tests/shadow tests/snapshot tests/spark
FOLDERS.others := $(filter-out tests/__pycache__ $(foreach part,$(PARTS),$(FOLDERS.$(part))), \
	$(patsubst %/,%,$(wildcard tests/*/))) $(filter-out tests,$(TESTS))
TEST_PARTS := $(addprefix test-,$(PARTS))
# The prefix of commands that compute and seldom wait: `make test` lowers their priority.
NICE :=
KERNELS := $(wildcard kframe/_*.pyx kframe/kernels/_*.pyx)
PLUGIN_KERNELS := $(wildcard $(addsuffix /*/_*.pyx,$(COMPILED_PLUGINS)) $(addsuffix /*/kernels/_*.pyx,$(COMPILED_PLUGINS)))
KERNEL_SOURCES := $(KERNELS) $(wildcard kframe/kernels/*.pxd plugins/*/*/kernels/*.pxd) $(PLUGIN_KERNELS)
KERNEL_MODULES := $(subst /,.,$(basename $(KERNELS))) \
	$(foreach plugin,$(COMPILED_PLUGINS),$(subst /,.,$(basename $(patsubst $(plugin)/%,%,$(filter $(plugin)/%,$(PLUGIN_KERNELS))))))

# The beginning of the file names of records that `make limits` and `make bench-suite` write.
RECORD = benchmarks/results/$(shell date -u +%F)

# Cases of a run of `make fuzz`, for znodes and for frames; the suite has 200,000 of each.
FUZZ_CASES ?= 10000000

DEBUG_LIB := build/debug/lib
# The debug build comes before the source tree in sys.path; PYTHONSAFEPATH stops python -m from adding the tree first.
# Properties have fewer examples than on the release build, since what they compute is the same.
DEBUG_ENV := KFRAME_DEBUG=1 PYTHONSAFEPATH=1 PYTHONPATH=$(CURDIR)/$(DEBUG_LIB) \
	HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-brief}

SANITIZE_LIB := build/sanitize/lib
SANITIZE_ENV = PYTHONSAFEPATH=1 PYTHONPATH=$(CURDIR)/$(SANITIZE_LIB) PYTHONMALLOC=malloc KFRAME_FUZZ_CASES=100000 \
	HYPOTHESIS_PROFILE=brief ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=8 UBSAN_OPTIONS=print_stacktrace=1 \
	LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libubsan.so)"

.DELETE_ON_ERROR:
.PHONY: setup distributions kernels debug-kernels lock sbom audit demo test test-all test-replication test-serverless \
	$(TEST_PARTS) test-servers test-debug faults soak linearizability week check $(CHECKS) fuzz sanitize \
	sim bench bench-suite bench-peers bench-fleet bench-compare limits roofline plots mutants docs reference \
	man dist clean
# A variable of the caller's shell must not change the release build.
unexport KFRAME_DEBUG
unexport KFRAME_SANITIZE
# Tests start many processes, which would compile all modules each time.
unexport PYTHONDONTWRITEBYTECODE

# A second make, because the first would not see that the installation has built the kernels already.
setup: $(VENV)/.installed
	@$(MAKE) --no-print-directory kernels

kernels: build/release/.built
	@:

demo: setup
	$(VENV)/bin/kframe demo $(ARGS)

bench: setup
	$(PY) -m benchmarks $(ARGS)

# The record is kept after each size; ARGS may choose fewer.
bench-suite: setup
	$(PY) -m benchmarks --only suite --largest 10000000 --out $(RECORD)-suite.json $(ARGS)
	$(PY) -m benchmarks.report.plots

bench-peers: setup
	$(PY) -m benchmarks.against_kafka $(ARGS)

# Six clusters and thirty of 100,000 partitions; ARGS may choose fewer.
bench-fleet: setup
	$(PY) -m benchmarks.fleet.commands --out $(RECORD)-fleet-commands.json $(ARGS)

bench-compare: setup
	$(PY) -m benchmarks.report.compare $(ARGS)

# About ten minutes on an idle machine.
limits: setup
	$(PY) -m benchmarks.limits.roofline --out $(RECORD)-roofline.json
	$(PY) -m benchmarks.limits.failure_cost --out $(RECORD)-own-work.json
	$(PY) -m benchmarks.limits.processes --out $(RECORD)-processes.json
	$(PY) -m benchmarks.report.plots

roofline: setup
	$(PY) -m benchmarks.limits.roofline $(ARGS)

plots: setup
	$(PY) -m benchmarks.report.plots $(ARGS)

# One of fifty seeds is played twice, to compare the runs. SIM_SEEDS and SIM_JOBS select seeds and processes.
sim: setup
	$(VENV)/bin/kframe sim run --seeds $(SIM_SEEDS) --jobs $(SIM_JOBS) $(ARGS)

# ARGS may name sections: network, processes, resources, clocks.
faults: setup
	$(PY) -m verification.kafka_wire.fault_report --record docs/evidence/faults.json $(ARGS)

# ARGS: --days, --seeds, --jobs, --record.
week: setup
	$(PY) -m verification.simulator.long_run $(ARGS)

# ARGS: --minutes, --seed.
soak: setup
	$(PY) -m verification.kafka_wire.soak --record docs/evidence/soak.json $(ARGS)

# ARGS: --minutes, --seed, --pages.
linearizability: setup
	$(PY) -m verification.kafka_wire.linearizability --record docs/evidence/linearizability.json $(ARGS)

# ARGS: --seed, --cases, --jobs.
fuzz: setup
	$(PY) -m verification.zookeeper.fuzz --cases $(FUZZ_CASES) $(ARGS)
	$(PY) -m verification.kafka_wire.fuzz --cases $(FUZZ_CASES) $(ARGS)
	$(PY) -m verification.kraft.fuzz --cases $(FUZZ_CASES) $(ARGS)

# Continues after an interruption. ARGS: --draw, --area.
mutants: setup
	$(PY) -m verification.mutants $(ARGS)

# Four targets at a time on two cores, the longest first; each prints its output when it is done. Servers depend on
# timeouts and mostly wait, so their tests have a higher priority than what computes. Only `make check` has the types for
# the newest Python.
test: setup
	@$(MAKE) --no-print-directory -j4 --output-sync=target NICE="nice -n 10" SERVERLESS='$(SERVERLESS) and not kernel' \
		test-servers test-debug $(TEST_PARTS) $(filter-out check-newest,$(CHECKS))

# The whole record is of one commit: a commit that changes no file outside docs/evidence continues it.
test-all: check debug-kernels
	$(PY) -m tests.all_tests --out docs/evidence/tests.json $(ARGS)

# ARGS selects some: ARGS="-k 2.8.2".
test-replication: setup
	$(PY) -m tests.all_tests --matrix replication --out docs/evidence/replication-runs.json $(ARGS)

# With ARGS all tests that it names, extended ones too.
test-serverless: setup
ifdef ARGS
	$(NICE) $(PYTEST) -n $(WORKERS) --dist worksteal -m 'not real' $(ARGS) $(ALLOW_NO_TESTS)
else
	@$(MAKE) --no-print-directory -j$(WORKERS) --output-sync=target $(TEST_PARTS)
endif

$(TEST_PARTS): test-%: setup
	$(NICE) $(PYTEST) -m '$(SERVERLESS)' $(FOLDERS.$*)

# With ARGS all tests with servers that it names.
test-servers: setup
	$(PYTEST) -m '$(if $(ARGS),real,smoke and not extended)' --durations=10 $(or $(ARGS),$(TESTS)) $(ALLOW_NO_TESTS)

# ARGS may name tests without the mark.
test-debug: debug-kernels
	$(DEBUG_ENV) $(NICE) $(PYTEST) -m '$(if $(ARGS),not real,kernel and not real and not extended)' $(or $(ARGS),$(TESTS)) \
		$(ALLOW_NO_TESTS)

# Copy all Python files again, so that the copy has no deleted module.
debug-kernels: setup build/debug/.settings
	@if [ -d $(DEBUG_LIB) ]; then find $(DEBUG_LIB) -name '*.py' -delete; fi
	KFRAME_DEBUG=1 $(NICE) $(PY) setup.py --quiet build --build-lib $(DEBUG_LIB)
	@set -e; for plugin in $(COMPILED_PLUGINS); do echo "debug build of $$plugin"; \
		(cd $$plugin && KFRAME_DEBUG=1 $(NICE) $(CURDIR)/$(PY) setup.py --quiet build --build-lib $(CURDIR)/$(DEBUG_LIB)); done

# ASan must be loaded first, and Python must use malloc so that ASan sees each block. Freed blocks in a
# quarantine of the default size would count as memory of a fuzz case.
sanitize: setup build/sanitize/.settings
	@if [ -d $(SANITIZE_LIB) ]; then find $(SANITIZE_LIB) -name '*.py' -delete; fi
	KFRAME_SANITIZE=1 $(PY) setup.py --quiet build --build-lib $(SANITIZE_LIB)
	@set -e; for plugin in $(COMPILED_PLUGINS); do echo "sanitizing build of $$plugin"; \
		(cd $$plugin && KFRAME_SANITIZE=1 $(CURDIR)/$(PY) setup.py --quiet build --build-lib $(CURDIR)/$(SANITIZE_LIB)); done
	$(SANITIZE_ENV) $(PY) -m pytest --benchmark-disable -m 'kernel and not real' $(or $(ARGS),$(TESTS))

# ARGS="--fresh-env" reads all pages again.
docs: setup
	$(PY) -m sphinx -W --keep-going --quiet --builder html $(ARGS) docs build/docs
	@echo "The front page is build/docs/index.html"

# A test compares them.
reference: setup
	$(PY) -m docs.generate.reference

# `mandoc docs/man/kframe.1` shows one.
man: setup
	$(PY) -m docs.generate.man

# ARGS="--python python3.12" builds for that interpreter alone.
dist: setup
	$(PY) -m tests.packaging.distributions $(ARGS)

# Versions and hashes of the tools. ARGS=--upgrade takes newer ones.
lock: setup
	$(PY) -m tests.packaging.lock $(ARGS)

# ARGS="dist kframe.cdx.json" are the folder of the wheels and the file to write.
sbom: setup
	$(PY) -m tests.packaging.supply_chain sbom $(ARGS)

audit: setup
	$(PY) -m tests.packaging.supply_chain audit $(ARGS)

check: setup
	@$(MAKE) --no-print-directory -j2 --output-sync=target --keep-going $(CHECKS)

check-types: setup
	$(NICE) $(PY) -m mypy

# All plugins share a cache, so that mypy reads kframe once. The tree has another: its tests have the same module names.
# What verifies plugins imports all of them.
check-plugins: setup
	@set -e; for plugin in $(filter plugins/%,$(PLUGINS)); do echo "mypy $$plugin"; \
		MYPYPATH="$(PLUGIN_PATH)" $(NICE) $(PY) -m mypy --cache-dir .mypy_cache/plugins $$plugin verification; done

check-newest: setup
	$(NICE) $(PY) -m mypy --python-version $(NEWEST_PYTHON) $(PRODUCT)

check-stubs: setup
	$(NICE) $(PY) -m mypy.stubtest --mypy-config-file pyproject.toml $(KERNEL_MODULES)

check-style: setup build/.kernels-linted
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(VENV)/bin/lint-imports

# cython-lint has no cache, as the other tools have, and takes as long as all of them.
build/.kernels-linted: $(KERNEL_SOURCES) pyproject.toml $(VENV)/.installed
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(NICE) cython-lint $(KERNEL_SOURCES)
	@mkdir -p build
	@touch $@

clean:
	rm -rf build dist .benchmarks .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	rm -rf $(addsuffix /build,$(COMPILED_PLUGINS))
	rm -f kframe/*.so kframe/kernels/*.so $(addsuffix /*/*.so,$(COMPILED_PLUGINS)) $(addsuffix /*/kernels/*.so,$(COMPILED_PLUGINS))
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

# The distributions share one installation of their build requirements, instead of an isolated one each. pip uses one
# core, so the kernels are compiled meanwhile.
$(VENV)/.installed: pyproject.toml $(addsuffix /pyproject.toml,$(PLUGINS))
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("kframe needs Python 3.11 or newer; make PYTHON=...")'
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@echo "Installing kframe, its plugins and the tools into $(VENV); the first time takes some minutes, without output."
	@$(PY) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' \
		> $(VENV)/build-requires.txt
	$(PIP) -r $(VENV)/build-requires.txt
	@$(MAKE) --no-print-directory -j2 distributions kernels
	@touch $@

distributions:
	KFRAME_COMPILE=0 $(PIP) --no-build-isolation -e '.[dev]' $(addprefix -e ./,$(PLUGINS))

build/release/.built: build/release/.settings $(KERNEL_SOURCES) $(wildcard kframe/plugin/*.h)
	$(PY) setup.py --quiet build_ext --inplace
	@set -e; for plugin in $(COMPILED_PLUGINS); do \
		(cd $$plugin && $(CURDIR)/$(PY) setup.py --quiet build_ext --inplace); done
	@touch $@

# Cython ignores the settings when it decides whether a module is up to date.
build/%/.settings: setup.py kframe_build.py
	@rm -rf build/$*
	@mkdir -p build/$*
	@touch $@
