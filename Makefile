# make app     install, import the sample corpora, and open the app at http://localhost:8501
# make test    install, run all checks and tests except those marked `full`; tests marked `alone` run last, in sequence
# make test-full   make test, with the tests marked `full`; run it before you close an issue
# make quick   unit tests of the packages that differ from the last commit (tests/lab/touched.py), in under a minute
# make durations   print the seconds of the last `make test` by folder and by fixture
# make bench   measure the numbers of tests/lab/benchmarks/RESULTS.md
# make lint    run ruff, mypy and the rules of tests/lint
# make lock    write requirements.lock; make app and make test install from it on the same platform, unless LOCKED=0
# make sample   make the finished samples in assets/samples, with their small taggers; trains for half an hour
# make pictures  make the screenshots for empty pages and the README, and the gallery in docs; trains for a quarter of an hour
# make sbom    write sbom.json (CycloneDX) and licenses.txt of the installed packages
# make bundle  make the folder winnow-bundle with all packages and sources, for a machine without a network

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
export HF_HUB_DISABLE_TELEMETRY = 1
export DO_NOT_TRACK = 1
export LOCKED

# Tests write small files and sync each one. In /dev/shm, if it has enough space, this takes no time.
SPARE  := $(shell df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 8000000 { print "/dev/shm" }')

TIMED  := -p tests.lab.durations

.PHONY: app test test-full quick durations bench lint lock sample pictures sbom bundle clean

app: $(VENV)/.app
	$(BIN)/python -m core samples
	$(BIN)/python app.py

test test-full quick: export PYTEST_DEBUG_TEMPROOT = $(SPARE)
test test-full: export WINNOW_DURATIONS = $(VENV)/durations
test: LEFT_OUT = and not full
test-full: LAB = -o norecursedirs=".*"

# mypy runs during the first part, because alone it would leave one of two cores idle. Its output follows that part.
test test-full: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m tests.lint
	$(BIN)/python -m tests.browser.chromium
	rm -rf $(VENV)/durations
	$(BIN)/mypy >$(VENV)/mypy.txt 2>&1 & types=$$!; \
	$(BIN)/python -m pytest $(TIMED) $(LAB) -n 2 --dist worksteal -m "not browser and not alone $(LEFT_OUT)"; quiet=$$?; \
	wait $$types; typed=$$?; cat $(VENV)/mypy.txt; \
	$(BIN)/python -m pytest $(TIMED) tests/browser -n 3 --dist loadfile -m "browser and not alone $(LEFT_OUT)"; seen=$$?; \
	$(BIN)/python -m pytest $(TIMED) $$(grep -rl --include='test_*.py' mark.alone tests) -m "alone $(LEFT_OUT)" && \
	exit $$((typed + quiet + seen))

quick: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not browser and not alone and not full" $$($(BIN)/python -m tests.lab.touched)

durations: $(VENV)/.dev
	$(BIN)/python -m tests.lab.durations $(VENV)/durations

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m tests.lint
	$(BIN)/mypy

bench: $(VENV)/.dev
	for file in tests/lab/benchmarks/bench_*.py; do \
	  echo; echo "== $$file"; $(BIN)/python -m tests.lab.benchmarks.$$(basename $$file .py) || exit 1; \
	done

lock: $(VENV)/.app
	$(BIN)/python -m pip install --dry-run --ignore-installed --quiet --report $(VENV)/report.json -r requirements.txt
	$(BIN)/python .ci/lock < $(VENV)/report.json > requirements.lock

sample: $(VENV)/.app
	$(BIN)/python .ci/finished legal
	$(BIN)/python .ci/finished medical

pictures: $(VENV)/.dev
	$(BIN)/python -m tests.browser.chromium
	$(BIN)/python -m tests.lab.pictures
	$(BIN)/python -m tests.lab.gallery $(VENV)/gallery

sbom: $(VENV)/.app
	$(BIN)/python .ci/sbom .

bundle: $(VENV)/.app
	$(BIN)/python .ci/bundle winnow-bundle

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.app: requirements.txt requirements.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python .ci/install requirements.txt
	nice $(BIN)/python -m core.explore.projection >/dev/null 2>&1 &  # compiles the code of the map, so that the first map does not wait for it
	touch $@

$(VENV)/.dev: requirements-dev.txt requirements-cluster.txt requirements.txt requirements.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python .ci/install requirements-dev.txt
	touch $@ $(VENV)/.app
