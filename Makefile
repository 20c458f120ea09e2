# make app     everything set up, the app open at http://localhost:8501 with the sample corpora in place
# make test    everything set up, every test
# make bench   the numbers of the README
# make lint    ruff and mypy

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
export HF_HUB_DISABLE_TELEMETRY = 1
export DO_NOT_TRACK = 1

.PHONY: app test bench lint clean

app: $(VENV)/.app
	$(BIN)/python -m core samples
	$(BIN)/python -m streamlit run app.py

test: $(VENV)/.dev lint
	$(BIN)/python -m pytest

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.dev
	for file in tests/benchmarks/bench_*.py; do \
	  echo; echo "== $$file"; $(BIN)/python -m tests.benchmarks.$$(basename $$file .py) || exit 1; \
	done

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.app: requirements.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	nice $(BIN)/python -m core.models.projection >/dev/null 2>&1 &  # compiles the map's code, so that no map waits for it
	touch $@

$(VENV)/.dev: requirements-dev.txt requirements.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	touch $@ $(VENV)/.app
