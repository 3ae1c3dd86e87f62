# The whole workflow. Every verb first creates .venv and installs what it needs into it.

PYTHON ?= python3
JOBS ?= 2
TIME ?= 2m

VENV := .venv
BIN := $(VENV)/bin
LOWEST := .venv-lowest
LOWEST_TESTS := tests/interpreters/core tests/interpreters/test_serialization.py \
	tests/interpreters/primitives/test_parameters.py tests/func/compilation/test_exporting.py \
	tests/func/transforms/test_transforms.py tests/func/special \
	tests/right_or_loud/test_small_arguments.py
# The newest interpreter that is there: newest versions of NumPy and SciPy need it.
NEWEST_PYTHON ?= $(or $(firstword $(foreach minor,14 13 12,$(shell command -v python3.$(minor) >/dev/null 2>&1 && \
	python3.$(minor) -c 0 >/dev/null 2>&1 && echo python3.$(minor)))),$(PYTHON))
NEWEST := .venv-newest
CUPY := .venv-cupy
CUPY_TESTS := tests/backends/test_cupy_surface.py tests/project/test_cupy_page.py \
	tests/interpreters/primitives/test_devices.py
TORCH := torch==2.13.0+cpu
CHART := 'rosenbrock 100' 'black-scholes 100k' 'logistic 10k' 'rnn scan' 'mlp 1024' 'transformer large' 'mlp hvp'

# Many processes import func: the first one writes what it compiles for the others.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test check-all validate lowest newest cupy cuda-check gpu lint types docs dist bench mutants fuzz enumerate corpus suites clean

help:
	@echo "make demo    train two digit classifiers and draw their per-sample gradients"
	@echo "make test    run the tests, the docstring examples and the code in the documents"
	@echo "make check-all  everything that checks, in hours: .ci/run, newest, validate, mutants, enumerate, fuzz, cuda-check"
	@echo "make validate  run the tests with func.config.validate on: all translations of programs are checked by numbers"
	@echo "make lowest  run a part of the tests with the lowest versions that pyproject.toml declares"
	@echo "make newest  run the tests with the newest versions of everything, pre-releases included"
	@echo "make cupy    compare the calls of func with the installed CuPy, and run the gpu tests where a device is found"
	@echo "make cuda-check  compile the kernels of samples and random programs by NVRTC, and compare their results; no device"
	@echo "make gpu     with a device and without network: gpu tests, sanitizer, benchmark; renews docs/performance-gpu.md"
	@echo "make lint    check style, formatting, the import layers and the prose"
	@echo "make types   check types with mypy and pyright"
	@echo "make docs    build the pages into docs/_build/html, warnings being errors, and execute four notebooks"
	@echo "make dist    build source distribution and wheel into dist/, and use the wheel in a fresh environment"
	@echo "make bench   time func against its peers and renew all figures of the pages (ARGS='--quick' for a short run)"
	@echo "make mutants plant small faults, one at a time, and look whether the tests notice (ARGS='--only fft')"
	@echo "make fuzz    run random programs in every mode against the truth (TIME=2h, ARGS='nests --seed 7')"
	@echo "make enumerate  run small programs, all or sampled, against the truth (TIME=2h, ARGS='memory --complete')"
	@echo "make corpus  run the functions of the installed packages of docs/numpy.md in every transform (ARGS='fluids')"
	@echo "make suites  run the test suites of NumPy and SciPy, each call in every transform (ARGS='scipy.signal')"
	@echo "make clean   remove everything that these verbs made"

demo: $(VENV)/installed-examples
	$(BIN)/python examples/study/per_sample_gradients.py --output examples/output/per_sample_gradients.png $(ARGS)

test: $(VENV)/installed-test
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS)

# Compilation takes several times as long. No cache on disk: code that is loaded is not made.
validate: $(VENV)/installed-test
	FUNC_VALIDATE=1 FUNC_CACHE_DIR= $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder \
		-p no:cacheprovider -o timeout=1800 $(ARGS)

lowest: $(LOWEST)/installed
	$(LOWEST)/bin/python -m pytest -q -p no:cacheprovider $(or $(ARGS),$(LOWEST_TESTS))

newest: $(NEWEST)/installed
	$(NEWEST)/bin/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder -q -p no:cacheprovider $(ARGS)

check-all:
	.ci/run
	$(MAKE) newest
	$(MAKE) validate
	$(MAKE) mutants
	$(MAKE) enumerate TIME=$(TIME)
	$(MAKE) fuzz TIME=$(TIME)
	$(MAKE) cuda-check

cupy: $(CUPY)/installed
	$(CUPY)/bin/python -m pytest -n $(JOBS) -q -p no:cacheprovider $(or $(ARGS),$(CUPY_TESTS))

# Ten minutes on two cores; NVRTC needs neither a driver nor a device.
cuda-check: $(CUPY)/installed
	$(CUPY)/bin/python -m tools.cuda_check --jobs $(JOBS) $(ARGS)

# Runs in the environment that is there: a device machine may have no network to install from.
gpu:
	$(or $(GPU_PYTHON),$(PYTHON)) -m benchmarks.devices $(ARGS)

lint: $(VENV)/installed-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/python -m tools.prose

# Both take one core each.
types: $(VENV)/installed-lint
	$(BIN)/pyright & pyright=$$!; \
	$(BIN)/mypy; mypy=$$?; \
	wait $$pyright && exit $$mypy

docs: $(VENV)/installed-docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	$(BIN)/python -m tools.site_check docs/_build/html
	$(BIN)/python -m tools.browser_check docs/_build/html
	$(BIN)/python -m tools.notebooks docs/_build/html/notebooks
	@echo "built docs/_build/html/index.html"

dist: $(VENV)/installed-test $(VENV)/installed-lint
	$(BIN)/python -m tools.dist --keep dist

# Without ARGS: one run on two threads, on one, with torch.compile, and of first calls; then every figure of the pages.
bench: $(VENV)/installed-peers $(VENV)/installed-examples $(VENV)/installed-torch
ifneq ($(ARGS),)
	$(BIN)/python -m benchmarks $(ARGS)
else
	mkdir -p build/run
	$(BIN)/python -m benchmarks --memory --json 'build/run/two threads.json'
	$(BIN)/python -m benchmarks --threads 1 --json 'build/run/one thread.json'
	$(BIN)/python -m benchmarks $(CHART) --slow --contestants func.jit,torch.compile --json build/run/torch.compile.json
	$(BIN)/python -m benchmarks.first_calls --json 'build/run/first calls.json'
	$(BIN)/python -m benchmarks.figures --collect build/run
endif

mutants: $(VENV)/installed-test
	$(BIN)/python -m tools.mutants --jobs $(JOBS) $(ARGS)

fuzz: $(VENV)/installed-peers $(VENV)/installed-torch
	$(BIN)/python -m tools.fuzz --jobs $(JOBS) --time $(TIME) $(ARGS)

enumerate: $(VENV)/installed-test
	$(BIN)/python -m tools.enumerate --jobs $(JOBS) --time $(TIME) $(ARGS)

corpus: $(VENV)/installed-test
	$(BIN)/python -m tools.corpus $(or $(ARGS),--all --limit 40)

suites: $(VENV)/installed-test
	$(BIN)/python -m tools.suites $(or $(ARGS),scipy.signal scipy.ndimage)

clean:
	rm -rf $(VENV) $(LOWEST) $(NEWEST) $(CUPY) build dist docs/_build docs/gallery docs/reference examples/output *.egg-info
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "func needs Python 3.11 or newer, but '$(PYTHON)' is: $$($(PYTHON) --version 2>&1)." >&2; \
		echo "Name a newer interpreter, for example: make PYTHON=python3.12 demo" >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV) || { rm -rf $(VENV); \
		echo "'$(PYTHON)' cannot create a virtual environment;" \
		"on Debian and Ubuntu its package python3-venv is missing." >&2; exit 1; }

# One stamp for each extra of pyproject.toml. An edit of pyproject.toml installs again.
$(VENV)/installed-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@

# An environment with the lowest version of each dependency, and what the tests need.
$(LOWEST)/installed: pyproject.toml tools/lowest.py | $(BIN)/python
	$(BIN)/python -m venv --clear $(LOWEST)
	$(BIN)/python tools/lowest.py > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(LOWEST)/constraints.txt \
		--editable '.[bfloat16]' hypothesis mpmath pytest pytest-timeout pytest-xdist
	@touch $@

# An environment with the newest version of each dependency.
$(NEWEST)/installed: pyproject.toml
	$(NEWEST_PYTHON) -m venv --clear $(NEWEST)
	$(NEWEST)/bin/python -m pip install --quiet --disable-pip-version-check --pre --upgrade '.[test]'
	@touch $@

# An environment with CuPy and the CUDA libraries that it loads; neither needs a device to be imported.
$(CUPY)/installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m venv --clear $(CUPY)
	$(CUPY)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[cuda,test]' 'cupy-cuda13x[ctk]'
	@touch $@

# The CPU build of torch, where the package index in use carries it.
$(VENV)/installed-torch: pyproject.toml | $(BIN)/python
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(TORCH)' || \
		echo "$(TORCH) is not available here: the benchmark runs without torch."
	@touch $@
