# `make run` shows the whole chain on one machine; `make test` checks everything.
PYTHON ?= python3.11
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready

.PHONY: env run test long faults soak live topology fuzz lint bench pictures pins clean

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

# What takes minutes by itself; the last results are in infra/RELIABILITY.md.
long: env
	$(BIN)/python -m pytest -m long -n 2 --dist loadfile --no-loadscope-reorder

# kill -9, full disks, writers at once, executors without memory, a database that goes away: half an hour.
faults: env
	$(BIN)/python -m pytest tests/faults -s -o python_files='faults_*.py'

# Serving and page at a fixed rate, on the home that `make run` leaves; SOAK_MINUTES=60 for longer.
soak: env
	$(BIN)/python -m pytest tests/soak -s -o python_files='soak_*.py'

# A live broker slowed and followed: what else runs here would look like the broker's doing.
live: env
	$(BIN)/python -m pytest tests/app -o python_files='live_*.py'

# The services of infra/compose.yaml as processes, from empty databases to a served champion.
topology: env
	$(BIN)/python -m pytest tests/infra -s -o python_files='topology_*.py'

# Every reader of outside input, FUZZ_MINUTES of processor time in all; FUZZ_SEED and FUZZ_ONLY=READER as needed.
fuzz: env
	@$(BIN)/python -m pytest tests/fuzzing -q -s -o python_files='fuzz_*.py'

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@$(BIN)/python infra/secret_scan.py
	@$(BIN)/python infra/audit.py

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
