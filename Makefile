# Every command of the project. In a fresh clone each target first installs what it needs. All targets need Python
# 3.11 or newer, a C compiler and make. Tests that start servers also need JDK 17 and Maven.
#
#   make demo     fail brokers of a real cluster's snapshot and of a million-partition cluster, move partitions
#   make test     all checks and each test once, those of kernels and decoders on bounds-checked kernels
#   make test-extended  what `make test` checks, with further releases, protocols, security settings and faults; hours;
#                       writes the record
#   make test-real  only the plugins' tests that start servers and brokers; lists the slowest at the end
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
#   make search   every state of a small cluster within 12 steps; minutes
#   make mutants  removes each protection in turn and checks that a test fails
#   make setup    .venv with kframe, its plugins and the tools; compiles changed kernels
#   make docs     the documentation site, in build/docs; a warning of Sphinx is an error
#   make man      the manual pages in docs/man and of plugins, from the commands
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
COMPILED_PLUGINS := $(patsubst %/setup.py,%,$(wildcard simulator/setup.py plugins/*/setup.py))
# Plugins' tests may use what other plugins offer for tests.
PLUGIN_PATH := $(subst $() ,:,$(addprefix $(CURDIR)/,$(PLUGINS)))
# ARGS may select no test of a target: pytest then exits with 5.
ALLOW_NO_TESTS = $(if $(ARGS),|| [ $$? = 5 ])
# The mark expression of tests that start servers, brokers or Spark.
STARTED := real and not extended
# Tests of plugins that start servers; those of kafka_wire in two halves of equal duration.
REAL := $(addprefix test-real-,kafka_wire-1 kafka_wire-2 zookeeper kraft)
KAFKA_WIRE_1 := $(addprefix plugins/kafka_wire/tests/test_,capture.py command_logins.py execution.py failovers.py \
	java_logins.py java_tools.py network_faults.py parity.py replication.py)
# Folders of test-serverless-1: half of the duration of all tests that start no server. test-serverless-2 runs the
# others.
SERVERLESS_1 := $(addprefix tests/,benchmarks core docs kernels planning registry scenario shadow snapshot spark \
	whatif wire)
# The prefix of commands that compute and seldom wait: `make test` lowers their priority, least for the tests with Spark,
# which take longest.
NICE :=
NICE_SPARK :=
KERNELS := $(wildcard kframe/_*.pyx kframe/kernels/_*.pyx)
PLUGIN_KERNELS := $(wildcard $(addsuffix /*/_*.pyx,$(COMPILED_PLUGINS)))
KERNEL_SOURCES := $(KERNELS) $(wildcard kframe/kernels/*.pxd plugins/*/*/*.pxd) $(PLUGIN_KERNELS)
KERNEL_MODULES := $(subst /,.,$(basename $(KERNELS))) \
	$(foreach kernel,$(PLUGIN_KERNELS),$(notdir $(patsubst %/,%,$(dir $(kernel)))).$(notdir $(basename $(kernel))))

# The beginning of the file names of records that `make limits` and `make bench-suite` write.
RECORD = benchmarks/results/$(shell date -u +%F)

# Cases of a run of `make fuzz`, for znodes and for frames; the suite has 200,000 of each.
FUZZ_CASES ?= 10000000

DEBUG_LIB := build/debug/lib
# The tests of kernels beside their references and of decoders of untrusted bytes. `make test` runs them on this build
# alone, and all others on the release build alone.
KERNEL_TESTS := $(addprefix tests/,kernels wire core/test_replica_index.py registry/test_native.py) simulator/tests/fuzz \
	$(addprefix tests/snapshot/test_,bad_input.py bulk_readers.py directory.py) \
	$(addprefix plugins/zookeeper/tests/test_,decoders.py fuzz.py growing_reads.py jute.py topic_read.py) \
	$(addprefix plugins/kafka_wire/tests/test_,responses.py queue_merging.py fuzz.py requests.py wire_fuzz.py) \
	$(addprefix plugins/kraft/tests/test_,batches.py fuzz.py partition_columns.py replay.py)
# Further tests that call most kernels on the widest range of clusters. Servers, brokers and Spark run no kernel in the
# processes of their tests.
DEBUG_TESTS := $(KERNEL_TESTS) $(addprefix tests/,scenario staging planning/test_properties.py) \
	$(addprefix tests/core/test_,gauges.py leader_selection_properties.py) \
	$(addprefix tests/whatif/test_,invariants.py plan_kraft.py reassign_invariants.py sweep_cases.py sweep_invariants.py)
# Tests that the release build does not run. Only `make test` excludes any.
EXCLUDED_TESTS :=
# The debug build comes before the source tree in sys.path; PYTHONSAFEPATH stops python -m from adding the tree first.
# Properties have fewer examples than on the release build, since what they compute is the same.
DEBUG_ENV := KFRAME_DEBUG=1 PYTHONSAFEPATH=1 PYTHONPATH=$(CURDIR)/$(DEBUG_LIB) \
	HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-brief}

SANITIZE_LIB := build/sanitize/lib
SANITIZED := tests/kernels tests/wire tests/staging tests/planning/test_properties.py simulator/tests/fuzz \
	tests/registry/test_native.py plugins/zookeeper/tests/test_jute.py \
	plugins/zookeeper/tests/test_fuzz.py plugins/kafka_wire/tests/test_responses.py plugins/kafka_wire/tests/test_fuzz.py \
	$(addprefix plugins/kraft/tests/test_,batches.py fuzz.py partition_columns.py replay.py)
SANITIZE_ENV = PYTHONSAFEPATH=1 PYTHONPATH=$(CURDIR)/$(SANITIZE_LIB) PYTHONMALLOC=malloc KFRAME_FUZZ_CASES=100000 \
	HYPOTHESIS_PROFILE=brief ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=8 UBSAN_OPTIONS=print_stacktrace=1 \
	LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libubsan.so)"

.DELETE_ON_ERROR:
.PHONY: setup distributions kernels lock sbom audit demo test test-release test-quick test-serverless test-serverless-1 \
	test-serverless-2 test-started test-real test-real-tests test-extended faults soak linearizability week \
	$(REAL) test-debug check $(CHECKS) fuzz sanitize \
	search sim bench bench-suite bench-peers bench-fleet bench-compare limits roofline plots mutants docs man dist clean
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

search: setup
	$(PY) -m kframe_simulator.search $(ARGS)

# ARGS may name sections: network, processes, resources, clocks.
faults: setup
	$(PY) -m kframe_kafka_wire.testing.fault_report --record docs/evidence/faults.json $(ARGS)

# ARGS: --days, --seeds, --jobs, --record.
week: setup
	$(PY) -m kframe_simulator.testing.long_run $(ARGS)

# ARGS: --minutes, --seed.
soak: setup
	$(PY) -m kframe_kafka_wire.testing.soak --record docs/evidence/soak.json $(ARGS)

# ARGS: --minutes, --seed, --pages.
linearizability: setup
	$(PY) -m kframe_kafka_wire.testing.linearizability --record docs/evidence/linearizability.json $(ARGS)

# ARGS: --seed, --cases, --jobs.
fuzz: setup
	$(PY) -m kframe_zookeeper.testing.fuzz --cases $(FUZZ_CASES) $(ARGS)
	$(PY) -m kframe_kafka_wire.testing.fuzz --cases $(FUZZ_CASES) $(ARGS)
	$(PY) -m kframe_kraft.testing.fuzz --cases $(FUZZ_CASES) $(ARGS)

# Not part of `make test`: about five minutes of CPU, and hours with --seeds. ARGS may name mutants.
mutants: setup
	$(PY) -m kframe_simulator.mutants $(ARGS)

# Six targets at a time on two cores, the longest first, and each prints its output when it is done. Tests with servers
# and brokers depend on sessions and timeouts but mostly wait: they start first, and the others have a lower priority.
# Each test runs once: those of kernels on the debug build. Only `make check` has the types for the newest Python.
test: setup
	@$(MAKE) --no-print-directory -j6 --output-sync=target NICE="nice -n 10" NICE_SPARK="nice -n 4" \
		DEBUG_TESTS='$(KERNEL_TESTS)' EXCLUDED_TESTS='$(KERNEL_TESTS)' \
		test-real-kafka_wire-1 test-real-kafka_wire-2 test-real-zookeeper \
		test-real-tests test-serverless-2 test-serverless-1 test-debug test-real-kraft \
		$(filter-out check-newest,$(CHECKS))

test-release: test-serverless test-started

# test-quick excludes tests marked slow, which take more than two seconds each.
test-quick: SELECTED := not real and not extended and not slow
test-serverless: SELECTED := not real and not extended
test-quick test-serverless: setup
	$(if $(ARGS),$(PY) -m pytest -m '$(SELECTED)' $(ARGS) $(ALLOW_NO_TESTS), \
		@$(MAKE) --no-print-directory -j2 --output-sync=target --keep-going SELECTED='$(SELECTED)' \
		test-serverless-1 test-serverless-2)

test-serverless-1 test-serverless-2: SELECTED := not real and not extended
test-serverless-1 test-serverless-2: setup
	$(NICE) $(PY) -m pytest -p no:cacheprovider -m '$(SELECTED)' \
		$(addprefix --ignore=,$(EXCLUDED_TESTS)) \
		$(if $(filter %-1,$@),$(filter-out $(EXCLUDED_TESTS),$(SERVERLESS_1)),tests simulator plugins benchmarks/suite \
		$(addprefix --ignore=,$(SERVERLESS_1)))

test-started: setup
	$(if $(ARGS),,@$(MAKE) --no-print-directory test-real)
	@$(MAKE) --no-print-directory test-real-tests

# Spark, package registries, and servers of kframe's own tests.
test-real-tests: setup
	$(NICE_SPARK) $(PY) -m pytest -p no:cacheprovider -m '$(STARTED)' --durations=25 \
		$(or $(ARGS),tests simulator) $(ALLOW_NO_TESTS)

# None of these starts Spark. ARGS selects some: ARGS="-k secured". Two run at a time, because they mostly wait. make
# prints the output of each when it ends.
test-real: setup
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target --keep-going $(REAL)

# The settings of the whole tree apply, because its conftest.py marks these tests.
$(REAL): test-real-%: setup
	$(PY) -m pytest -c pyproject.toml -p no:cacheprovider -m '$(STARTED)' $(TESTS) --durations=25 $(ARGS) $(ALLOW_NO_TESTS)

test-real-kafka_wire-1: TESTS := $(KAFKA_WIRE_1)
test-real-kafka_wire-2: TESTS := plugins/kafka_wire $(addprefix --ignore=,$(KAFKA_WIRE_1))
test-real-zookeeper test-real-kraft: TESTS = plugins/$*

# ARGS selects some: ARGS="-k 2.8.2". The record is kept after each file.
test-extended: setup
	$(PY) -m tests.extended --record docs/evidence/extended.json $(ARGS)

# Copy all Python files again, so that the copy has no deleted module.
test-debug: setup build/debug/.settings
	@if [ -d $(DEBUG_LIB) ]; then find $(DEBUG_LIB) -name '*.py' -delete; fi
	KFRAME_DEBUG=1 $(PY) setup.py --quiet build --build-lib $(DEBUG_LIB)
	@set -e; for plugin in $(COMPILED_PLUGINS); do echo "debug build of $$plugin"; \
		(cd $$plugin && KFRAME_DEBUG=1 $(CURDIR)/$(PY) setup.py --quiet build --build-lib $(CURDIR)/$(DEBUG_LIB)); done
	$(DEBUG_ENV) $(NICE) $(PY) -m pytest -p no:cacheprovider -m 'not real and not extended' \
		$(or $(ARGS),$(DEBUG_TESTS)) $(ALLOW_NO_TESTS)

# ASan must be loaded first, and Python must use malloc so that ASan sees each block. Freed blocks in a
# quarantine of the default size would count as memory of a fuzz case.
sanitize: setup build/sanitize/.settings
	@if [ -d $(SANITIZE_LIB) ]; then find $(SANITIZE_LIB) -name '*.py' -delete; fi
	KFRAME_SANITIZE=1 $(PY) setup.py --quiet build --build-lib $(SANITIZE_LIB)
	@set -e; for plugin in $(COMPILED_PLUGINS); do echo "sanitizing build of $$plugin"; \
		(cd $$plugin && KFRAME_SANITIZE=1 $(CURDIR)/$(PY) setup.py --quiet build --build-lib $(CURDIR)/$(SANITIZE_LIB)); done
	$(SANITIZE_ENV) $(PY) -m pytest $(SANITIZED) $(ARGS)

# ARGS="--fresh-env" reads all pages again.
docs: setup
	$(PY) -m sphinx -W --keep-going --quiet --builder html $(ARGS) docs build/docs
	@echo "The front page is build/docs/index.html"

# A test compares them. `mandoc docs/man/kframe.1` shows one.
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
check-plugins: setup
	@set -e; for plugin in $(filter plugins/%,$(PLUGINS)); do echo "mypy $$plugin"; \
		MYPYPATH="$(PLUGIN_PATH)" $(NICE) $(PY) -m mypy --cache-dir .mypy_cache/plugins $$plugin; done

check-newest: setup
	$(NICE) $(PY) -m mypy --python-version $(NEWEST_PYTHON) $(PRODUCT)

check-stubs: setup
	$(NICE) $(PY) -m mypy.stubtest --mypy-config-file pyproject.toml $(KERNEL_MODULES)

check-style: setup
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(NICE) cython-lint $(KERNEL_SOURCES)
	$(VENV)/bin/lint-imports

clean:
	rm -rf build dist .benchmarks .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	rm -rf $(addsuffix /build,$(COMPILED_PLUGINS))
	rm -f kframe/*.so kframe/kernels/*.so $(addsuffix /*/*.so,$(COMPILED_PLUGINS))
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

# The distributions share one installation of their build requirements, instead of an isolated one each. pip uses one
# core, so the kernels are compiled meanwhile.
$(VENV)/.installed: pyproject.toml $(addsuffix /pyproject.toml,$(PLUGINS))
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("kframe needs Python 3.11 or newer; make PYTHON=...")'
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@echo "Installing kframe, its plugins and the tools into $(VENV); the first time takes some minutes."
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
