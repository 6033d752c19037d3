# Two commands do everything on a fresh machine with Python 3.11 or newer:
#   make demo   set up, run the main job on an embedded sample, end with the path of what was made
#   make test   set up, then the linters, the type checker, the import contracts and all tests
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test lint docs benchmarks clean

demo: $(VENV)/.base
	$(BIN)/hakaru demo

test: $(VENV)/.dev
	scripts/install-system-packages
	$(MAKE) --no-print-directory lint
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m 'not alone'
	$(BIN)/python -m pytest -m alone

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.dev
	$(BIN)/python docs/generate.py

benchmarks: $(VENV)/.dev
	$(BIN)/python -m benchmarks

# the scripts of the pages come from npm with the install: without them, install again
MISSING := $(if $(wildcard src/hakaru/assets/echarts.min.js),,missing-scripts)
.PHONY: missing-scripts

$(VENV)/.base: pyproject.toml constraints.txt hatch_build.py $(MISSING)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Hakaru needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	touch $@

$(VENV)/.dev: $(VENV)/.base
	$(PIP) -e '.[dev,measure,sim,spark,web]'
	touch $@

clean:
	rm -rf $(VENV) hakaru-demo
