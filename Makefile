# `make run` shows the whole chain on one machine; `make test` checks everything.
PYTHON ?= python3.11
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready

.PHONY: env run test live lint bench pictures pins clean

env: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || { \
	  python=$$(command -v $(PYTHON) || command -v python3) || { echo "brokertwin needs CPython 3.11"; exit 1; }; \
	  $$python -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11) and "brokertwin needs CPython 3.11, this is " + sys.version)' \
	  && $$python -m venv $(VENV); }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv -c constraints.txt
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/uv pip install --quiet --compile-bytecode -c constraints.txt -e '.[dev]'
	@touch $@

run: env
	@$(BIN)/twin run

test: lint
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

# A live broker slowed and followed: what else runs here would look like the broker's doing.
live: env
	$(BIN)/python -m pytest tests/app -o python_files='live_*.py'

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: env
	@$(BIN)/python -m pytest tests/benchmarks -q -s -o python_files='bench_*.py'

# The README's pictures, taken from the home that `make run` leaves.
pictures: env
	$(BIN)/python -m pytest tests/picture_readme.py -q -o python_files='picture_*.py'

# Every pin anew, without index lines or addresses.
pins:
	$(BIN)/uv pip compile --quiet --python-version 3.11 --extra dev --no-header --no-annotate --no-emit-index-url --upgrade \
	  pyproject.toml -o constraints.txt
	@echo "uv==$$($(BIN)/uv --version | cut -d' ' -f2)" >> constraints.txt

clean:
	rm -rf $(VENV) .twin
