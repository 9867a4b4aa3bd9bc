# Everything runs in .venv, made on first use and rebuilt only when the dependencies change.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
# Two workers on two cores: with more than one thread each they would wait for one another.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadscope

.PHONY: demo test check lint format site floors

demo: $(READY)  ## learn a stream of characters with three methods and compare them
	$(BIN)/ssil demo

test: lint  ## everything
	$(PYTEST)

check: lint  ## everything but the slow tests
	$(PYTEST) -m "not slow"

site: $(READY)  ## the documentation as pages, in build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

FLOORS := build/floors
TORCH ?= torch==2.13.0
EXTRAS := cluster heic report studio tensorboard weights

floors:  ## the quick tests with the lowest versions that pyproject.toml allows (torch aside), in build/floors
	$(PYTHON) -m venv $(FLOORS)
	$(FLOORS)/bin/python -m pip install --quiet --disable-pip-version-check uv
	echo '$(TORCH)' > $(FLOORS)/torch.in
	$(FLOORS)/bin/uv pip compile --quiet --resolution lowest-direct --only-binary :all: $(EXTRAS:%=--extra %) \
	    pyproject.toml $(FLOORS)/torch.in --output-file $(FLOORS)/lowest.txt
	$(FLOORS)/bin/uv pip install --quiet --python $(FLOORS) --requirement $(FLOORS)/lowest.txt hatchling httpx2 hypothesis \
	    ipykernel jsonschema nbclient playwright pytest pytest-xdist schemathesis
	$(FLOORS)/bin/uv pip install --quiet --python $(FLOORS) --no-deps --editable .
	OMP_NUM_THREADS=1 $(FLOORS)/bin/python -m pytest -n 2 --dist loadscope -m "not slow" -W ignore::DeprecationWarning --ignore tests/e2e

lint: $(READY)
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ssil needs Python 3.11 or newer: make PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $(READY)
