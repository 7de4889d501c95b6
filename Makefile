# Every target makes what it needs, from a fresh clone with Python, a C++20 compiler and make.
#
#   make test        the core's tests (CTest), then the Python tests: the contract on two CPU devices and the GPUs there are, then
#                    on two simulated GPUs; all others; and programs of several processes, under MPI
#   make mutate      plants bugs in the hazard engine, one at a time, and says which the tests notice
#   make fuzz        random kernels: what they compute on a CPU, beside their code for CUDA on the host
#   make lint        formatters and checkers; changes nothing
#   make format      what the formatters can mend
#   make demo        the program that shows what Anabranch is for
#   make bench       the benchmarks
#   make docs        the documentation, into build/docs
#   make wheels      the sdist and a wheel for each Python of PYTHONS, audited and tried, into dist
#
# Importing the package from $(VENV) builds what changed since the last import, which takes up to a second where nothing
# did. Tests, which start thousands of interpreters, and what is measured run as $(installed): with a copy of the package as
# users have it.

PYTHON ?= python3
VENV ?= .venv
FREE_THREADED_VENV ?= .venv-ft
FREE_THREADED_PYTHON ?=
PYTHONS ?=
EXTRAS ?= kernels,trace cu12 cu13
JOBS ?= $(shell nproc)

bin := $(abspath $(VENV))/bin
ft_bin := $(abspath $(FREE_THREADED_VENV))/bin
installed = $(call with_site,build/site)
with_site = SKBUILD_EDITABLE_SKIP="$$(printf '%s:' '$(CURDIR)'/build/editable-*)" PYTHONPATH='$(CURDIR)/$(1)'
build_files := pyproject.toml CMakeLists.txt core/CMakeLists.txt src/anabranch/CMakeLists.txt

export PATH := $(bin):$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Where the newest version of a package has no wheel for an interpreter, the free-threaded one above all, take an older one.
export PIP_ONLY_BINARY := :all:
# Pytest rewrites the assertions of a module once, where it may keep what comes of it.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: all install core test test-core test-python test-tsan test-asan free-threaded test-free-threaded test-four-threads simulated-driver
.PHONY: mutate fuzz lint lint-python lint-types lint-core format demo site ft-site bench counts docs news wheels clean

all: install

# Virtual environments: a stamp for each group of packages, made again when pyproject.toml changes.

$(bin)/.base: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(bin)/python -m pip install -q --upgrade 'pip>=25.1'
	$(bin)/python -m pip install -q --group build
	@touch $@

$(bin)/.package: $(bin)/.base $(build_files)
	$(bin)/python -m pip install -q --no-build-isolation -e '.[demo]'
	@touch $@

$(bin)/.test $(bin)/.cuda $(bin)/.uvloop $(bin)/.lint $(bin)/.bench $(bin)/.docs $(bin)/.news $(bin)/.wheels $(bin)/.mpi $(bin)/.dask: $(bin)/.%: $(bin)/.base
	$(bin)/python -m pip install -q --group $*
	@touch $@

install: $(bin)/.package

# Tests

test: test-core test-python

core: $(bin)/.base
	$(bin)/cmake -S . -B build/core -G Ninja --log-level=WARNING
	$(bin)/cmake --build build/core

test-core: core
	$(bin)/ctest --test-dir build/core -j $(JOBS) --output-on-failure --no-tests=error --timeout 300

test-python: site $(bin)/.test $(bin)/.mpi $(bin)/.dask $(bin)/.cuda $(bin)/.uvloop $(bin)/.lint simulated-driver
	$(on_two) $(pytest) $(spread) -q tests/contract tests/hazards -m 'not ($(alone))'
	$(on_simulated) $(pytest) $(spread) -q tests/contract tests/cuda/test_peer.py -k cuda -m 'not numba and not ($(alone))'
	$(on_two) $(pytest) -q $(filter tests/contract/%,$(alone_in)) -m '$(alone)'
	$(on_simulated) $(pytest) -q $(filter tests/contract/%,$(alone_in)) -k cuda -m 'not numba and ($(alone))'
	$(pytest) $(filter-out tests/contract/%,$(alone_in)) -m '$(alone)'
	$(pytest) $(spread) $(others) -m 'not ($(alone))'
	$(pytest) $(spread) -q tests/distributed

# Without plugins of which no test here has a use, and which look at each of thousands of tests.
pytest = $(installed) $(bin)/python -m pytest -p no:anyio -p no:run-parallel
others = --ignore=tests/contract --ignore=tests/hazards --ignore=tests/distributed
# In a process for each core, but for what looks at times or at free memory.
spread = -n $(JOBS) --dist worksteal
alone = alone or memory or slow
# The files that have such tests: to collect all takes longer than to run these.
alone_in = $(shell grep -rlE 'mark\.(alone|memory|slow)\b' tests --include='test_*.py')
on_two = ANABRANCH_CPU_DEVICES=2

# What runs with this in front sees one CPU device and two simulated GPUs, and is tested on the latter.
on_simulated = LD_LIBRARY_PATH='$(CURDIR)/build/core/core/tests/simulated' FAKE_DEVICES=2 \
  ANABRANCH_DEVICE=cpu ANABRANCH_CPU_DEVICES=1 ANABRANCH_TESTED=cuda

simulated-driver: $(bin)/.base
	$(bin)/cmake -S . -B build/core -G Ninja --log-level=WARNING
	$(bin)/cmake --build build/core --target simulated_driver simulated_nccl

sanitized = \
	$(bin)/cmake -S . -B build/$(1) -G Ninja --log-level=WARNING \
	  -DCMAKE_BUILD_TYPE=RelWithDebInfo -DANABRANCH_SANITIZE=$(1) && \
	$(bin)/cmake --build build/$(1) && \
	$(bin)/ctest --test-dir build/$(1) -j $(JOBS) --output-on-failure --no-tests=error --timeout 300 $(2)

# Tests of random programs that start no thread.
one_thread = ^(hazard_history|hazard_clock|memory_layout|memory_copy_path|explore_dpor)_test$$

test-tsan: $(bin)/.base
	TSAN_OPTIONS="halt_on_error=1 second_deadlock_stack=1" && export TSAN_OPTIONS && \
	$(call sanitized,thread,-E '$(one_thread)')

test-asan: $(bin)/.base
	ASAN_OPTIONS="detect_stack_use_after_return=1" && export ASAN_OPTIONS && $(call sanitized,address)

# The interpreter: FREE_THREADED_PYTHON, else python3.13t from PATH, else one that the script builds from Debian's source, once.
$(ft_bin)/.package: $(build_files)
	@python='$(FREE_THREADED_PYTHON)'; \
	[ -n "$$python" ] || python=$$(command -v python3.13t) || \
	  python=$$(tools/build-python 3.13t) || \
	  { echo 'No free-threaded Python found: set FREE_THREADED_PYTHON to its path' >&2; exit 1; }; \
	set -ex; "$$python" -m venv $(FREE_THREADED_VENV); \
	$(ft_bin)/python -m pip install -q --upgrade 'pip>=25.1'; \
	$(ft_bin)/python -m pip install -q --group build --group test; \
	PATH='$(ft_bin)':"$$PATH" $(ft_bin)/python -m pip install -q --no-build-isolation -e '.[trace]'
	@touch $@

free-threaded: $(ft_bin)/.package

# conftest.py has a run fail if the lock came on. One of the two simulated GPUs: `test-python` takes both.
test-free-threaded: ft-site simulated-driver
	$(unlocked) $(on_simulated):0 $(ft_pytest) $(spread) -q tests/contract tests/threads -m 'not numba and not ($(alone))' -k cuda
	$(unlocked) $(on_simulated):0 $(ft_pytest) -q $(filter tests/contract/%,$(alone_in)) -m 'not numba and ($(alone))' -k cuda
	$(unlocked) $(ft_pytest) -q $(filter-out tests/contract/%,$(alone_in)) -m 'not numba and ($(alone))'
	$(unlocked) $(ft_pytest) $(spread) -q --ignore=tests/contract -m 'not numba and not source and not ($(alone))'

# Every test of the contract in 4 threads at once.
test-four-threads: ft-site
	$(unlocked) ANABRANCH_DEVICE=cpu ANABRANCH_TESTED=cpu:0 $(ft_pytest) $(spread) -q tests/contract -m 'not numba' --parallel-threads=4

unlocked = env -u PYTHON_GIL PATH='$(ft_bin)':"$$PATH"
ft_pytest = $(call with_site,build/ft-site) $(ft_bin)/python -m pytest

mutate: $(bin)/.package $(bin)/.test
	$(bin)/python tools/mutate.py

SEED ?= 0
SECONDS ?= 600

fuzz: $(bin)/.cuda site
	$(installed) $(bin)/python -W ignore -m tests.fuzz --seed $(SEED) --seconds $(SECONDS)

# Checks

lint: lint-python lint-types lint-core

lint-python: $(bin)/.lint
	$(bin)/ruff check .
	$(bin)/ruff format --check .
	$(bin)/cython-lint src

lint-types: $(bin)/.package $(bin)/.lint
	$(bin)/mypy
	$(bin)/pyright --verifytypes anabranch --ignoreexternal

# With options of their own, see core/CMakeLists.txt.
compiled_alone = core/src/memory/convert.cpp

core_files = $(shell find core src -name '*.hpp' -o -name '*.cpp')

# Several files together: clang-tidy's time goes into reading headers.
lint-core: $(bin)/.lint
	$(bin)/clang-format --dry-run -Werror $(core_files)
	$(bin)/cmake -S . -B build/lint -G Ninja --log-level=WARNING
	$(bin)/cmake --build build/lint --target ptx
	{ find build/lint/core/CMakeFiles/anabranch.dir/Unity -name '*.cxx' -print0; printf '%s\0' $(compiled_alone); } | \
	  xargs -0 -n 1 -P "$$(nproc)" $(bin)/clang-tidy -p build/lint --quiet --extra-arg=-Qunused-arguments \
	    --extra-arg=-Wno-ignored-optimization-argument

format: $(bin)/.lint
	$(bin)/ruff check --fix-only .
	$(bin)/ruff format .
	$(bin)/clang-format -i $(core_files)

# The rest

demo: $(bin)/.package
	$(bin)/anabranch demo

# The package as a wheel has it, without the finder of the editable install, from what that has compiled.
site: $(bin)/.package
	$(call copy_package,build/site,$(bin))

ft-site: $(ft_bin)/.package
	$(call copy_package,build/ft-site,$(ft_bin))

# With the times of the files, by which kernels that are compiled know the compiler: of the same sources they stay compiled.
define copy_package
	rm -rf $(1)
	cp -rL --preserve=timestamps src $(1)
	compiled="$$(PATH='$(2)':"$$PATH" python -c 'import anabranch._core.core as core; print(core.__file__)')" && \
	cp -r "$$(dirname "$$compiled")"/../. $(1)/anabranch
	PATH='$(2)':"$$PATH" python -m compileall -q $(1)
endef

bench: site $(bin)/.bench
	$(installed) $(bin)/python benchmarks/compare.py

# Instruction counts, compared with the recorded ones.
counts: site
	if [ -f benchmarks/counts.py ]; then $(installed) $(bin)/python benchmarks/counts.py --check; fi

docs: $(bin)/.package $(bin)/.docs
	$(bin)/python -m sphinx -q -W --keep-going -E -a -b html docs build/docs

# PYTHONS names interpreters, by path or as PATH has them; without it, those of all versions that are there. More can be
# had with tools/build-python. The first one's wheel is tried with EXTRAS too, of which those for GPUs download gigabytes.
wheels: $(bin)/.wheels
	$(bin)/python tools/wheels.py --extras='$(EXTRAS)' $(PYTHONS)

# The release notes that the fragments in news/ add up to.
news: $(bin)/.news
	$(bin)/towncrier build --draft --version next

clean:
	rm -rf build dist
