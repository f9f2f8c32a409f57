# `make help` lists what a contributor needs, `make help-all` every target. tools/environment.py makes
# the environment .venv on demand, and renews it when pyproject.toml, requirements.txt or
# requirements.lock changes; CONSTRAINTS= takes the newest versions in place of the locked ones, in
# _build/newest, as weekly. GNU make 3.81 is enough.

PYTHON ?= python3
PORT ?= 8000
JOBS ?= 3
BENCH ?= numpy_attention gradients tiny_model torch_attention packed_projection decode windows state

VENV := $(if $(filter undefined,$(origin CONSTRAINTS)),.venv,_build/newest)
BIN := $(VENV)/bin
MADE := $(VENV)/.made
BOOK := $(VENV)/.book
PDF := $(VENV)/.pdf
TEST := $(VENV)/.test
TORCH := $(VENV)/.torch
REAL := $(VENV)/.real
SITE := _build/html/.built
SOURCES := $(shell find book notebooks src tools/chapters.py LICENSE* README.md _config.yml _toc.yml tests/site/budgets.yml \
	-type f -not -path '*/__pycache__/*' -not -path '*.egg-info/*' -not -path '*/.ipynb_checkpoints/*' 2>/dev/null)

FETCH_CHROMIUM = PLAYWRIGHT_DOWNLOAD_CONNECTION_TIMEOUT=10000 \
	$(BIN)/python -m playwright install --only-shell chromium
# In the order of collection: else the few long tests of one file begin last, and one waits.
PYTEST = $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder
NBVAL = --nbval --nbval-current-env --nbval-cell-timeout=600
STRICT = TUTORIAL_LIB_STRICT=1
ONE_THREAD = OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

# Where it is set, each of the hundreds of processes of a test run compiles the library again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help help-all book serve pdf site-assets chapter check test test-all test-library test-oldest test-site test-blas test-gpu test-peers pictures colab-check student coursework-check notebooks bench lint format release dist lock clean browser colab oldest python

# Two hashes: for everyone who changes a page; three: for all the rest.
help:  ### List what a contributor needs
	@awk -F ':.*## ' '/^[a-z-]+:.*[^#]## / {printf "  make %-10s  %s\n", $$1, $$2}' Makefile

help-all:  ## List every target
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s  %s\n", $$1, $$2}' Makefile

book: $(SITE)  ## Build the website into _build/html

$(SITE): $(BOOK) $(SOURCES)
	@echo "==> Building every page of the site"
	@rm -rf _build/html
	@$(BIN)/jupyter-book build . -W -n --keep-going --all
	@mkdir -p $(@D) && touch $@
	@echo "==> The site is built. Open _build/html/index.html, or run: make serve"

serve:  ## Serve the website on this machine (PORT=8000)
	@test -f _build/html/index.html || $(MAKE) book
	@echo "==> http://localhost:$(PORT) shows the book; Ctrl-C ends it"
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory _build/html $(PORT)

pdf: book $(PDF)  ### Print the whole book into the site, attention-head-by-head.pdf
	@echo "==> Printing the book with Chromium"
	@$(BIN)/python -m tools.print_book

site-assets: $(MADE)  ### Copy Python into the built site, for hosts that ask no one else (FROM=address)
	@$(BIN)/python -m tools.site_assets $(FROM)

chapter: $(REAL)  ## Refresh, check and build one chapter in a minute (NB=05_concatenation)
	@$(STRICT) $(ONE_THREAD) $(BIN)/python -m tools.chapter "$(NB)" \
		$(BIN)/python -m pytest $(NBVAL) -q --tb=short -m "not colab"

check: lint  ## Check style, texts, banks, library and Part I in two minutes, without PyTorch
	@names=$$($(BIN)/python -m tools.chapters "Part I") && $(STRICT) $(ONE_THREAD) $(PYTEST) $(NBVAL) \
		-p tools.without_torch -m "not colab and not long" \
		tests/chapters tests/library tests/practice $$names

test: lint $(REAL) browser book  ## Check everything; of the tests marked `long`, samples
	@echo "==> Running the tests and every cell of every chapter"
	$(STRICT) $(ONE_THREAD) $(PYTEST) $(NBVAL) -m "not colab and not picture and not long" tests notebooks

test-all: lint $(REAL) browser book  ### Check everything and the tests marked `long`, as weekly
	$(STRICT) $(ONE_THREAD) $(PYTEST) $(NBVAL) -m "not colab" tests notebooks

test-library: $(TORCH)  ### Test the library alone, without the chapters' stored outputs
test-oldest: oldest  ### The same with the oldest versions that pyproject.toml promises
test-oldest: BIN = _build/oldest/bin
test-library test-oldest:
	$(STRICT) $(ONE_THREAD) $(PYTEST) tests/library tests/pytorch tests/practice

test-site: $(TEST) browser book  ### Check the website in a real browser, of the tests marked `long` none
	@$(PYTEST) -m "not picture and not long" tests/site

pictures: $(TEST) browser book  ### Keep every page as a picture, 320 and 1440 pixels wide
	@$(PYTEST) -m picture tests/site

colab-check: $(TEST) colab  ### Run each notebook alone, in an empty folder, with Colab's versions
	@$(BIN)/python -m pytest -v tests/chapters/test_colab.py

test-blas: $(REAL)  ### Repeat tests and chapters as eight other processors would run them
	@$(STRICT) $(BIN)/python -m tools.blas_matrix $(PYTEST) $(NBVAL) -q --ignore tests/site \
		-m "not colab and not picture and not long" tests notebooks

test-peers: $(REAL)  ### Test beside libraries that the book itself does not need, such as JAX
	@$(BIN)/python -m pip install --quiet --upgrade --target _build/peers \
		--constraint requirements.txt --requirement requirements.peers
	@PYTHONPATH=_build/peers $(STRICT) $(ONE_THREAD) $(BIN)/python -m pytest -v tests/peers

test-gpu: $(TORCH)  ### Run the tests marked `gpu`, and Part II, on a machine with CUDA
	@$(BIN)/python -c "import sys, torch; sys.exit(not torch.cuda.is_available())" || { \
		echo "make test-gpu needs a CUDA device and a CUDA build of PyTorch" >&2; exit 1; }
	$(STRICT) $(PYTEST) -m gpu tests
	names=$$($(BIN)/python -m tools.chapters "Part II") && $(STRICT) $(PYTEST) $(NBVAL) $$names

student: $(BOOK)  ### Write a chapter without its solutions into student/ (CHAPTER=05_concatenation)
	@$(BIN)/python -m coursework student "$(CHAPTER)"

coursework-check: $(TORCH)  ### Hand in every mistake of every assignment to the grader
	@for name in $(patsubst coursework/assignments/%/grading.py,%,$(wildcard coursework/assignments/*/grading.py)); do \
		$(BIN)/python -m coursework check $$name || exit 1; done

notebooks: $(REAL)  ## Run chapters and store their outputs (all, or NB=03_attention_weights)
	@$(STRICT) $(ONE_THREAD) $(BIN)/python -m tools.run_notebooks $(NB)

bench: $(TORCH)  ### Measure again what chapters show (all, or BENCH=numpy_attention)
	@for name in $(BENCH); do $(ONE_THREAD) $(BIN)/python -m experiments $$name && \
		$(STRICT) $(BIN)/python -m tools.blas_matrix --most 3 $(PYTEST) -q tests/experiments/test_records.py \
		$$(find tests/experiments -name "test_$$name.py") || exit 1; done

lint: $(TEST)  ### Check style and formatting
	@echo "==> Checking style and formatting"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

format: $(TEST)  ## Mend style and formatting
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

release: $(MADE)  ### Set the version and what the set-up cells install (VERSION=1.0.0 DOI=)
	@$(BIN)/python -m tools.release "$(VERSION)" $(DOI)

dist: book  ### Pack the library and the built site into dist/, as a release offers them
	@$(BIN)/python -m tools.pack

lock: python  ### Renew requirements.lock from requirements.txt
	@$(PYTHON) tools/environment.py lock

clean:  ### Remove the site and the caches (.venv stays)
	@rm -rf _build build dist .pytest_cache .ruff_cache src/*.egg-info
	@find . -name __pycache__ -not -path './$(VENV)*' -prune -exec rm -rf {} +

# The system's Chromium, or else the one that playwright fetches into its own folder.
browser: $(TEST)
	@for name in chromium-headless-shell chromium chromium-browser; do \
		command -v $$name >/dev/null && exit; done; \
	$(FETCH_CHROMIUM) >/dev/null 2>&1 || echo "==> There is no Chromium here and none could be" \
		"fetched, so the tests of the site in a browser will be SKIPPED. To run them:" \
		"apt-get install chromium-headless-shell"

oldest colab: python
	@$(PYTHON) tools/environment.py $@

# Asks each time, and touches the stage only where something was installed.
$(VENV)/.%: python
	@$(PYTHON) tools/environment.py $*

python:
	@command -v $(PYTHON) >/dev/null || { echo "There is no $(PYTHON) here: install Python" \
		"(Debian: apt-get install python3 python3-venv), or name the one you have, for example" \
		"make book PYTHON=python3.12" >&2; exit 1; }
