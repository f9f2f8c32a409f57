# `make help` lists the targets. The environment .venv is made on demand, reused, and renewed when
# pyproject.toml, requirements.txt or requirements.lock changes. GNU make 3.81 is enough.

PYTHON ?= python3
PORT ?= 8000
JOBS ?= 2
BENCH ?= numpy_attention gradients tiny_model torch_attention packed_projection
# Empty for the newest versions that pyproject.toml allows, as in the weekly workflow.
CONSTRAINTS ?= requirements.txt requirements.lock

VENV := .venv
BIN := $(VENV)/bin
MADE := $(VENV)/.made
BOOK := $(VENV)/.book
PDF := $(VENV)/.pdf
TEST := $(VENV)/.test
LOCK_ENV := _build/lock
SITE := _build/html/.built
SOURCES := $(shell find book notebooks src LICENSE* README.md _config.yml _toc.yml tests/site/budgets.yml \
	-type f -not -path '*/__pycache__/*' -not -path '*.egg-info/*' -not -path '*/.ipynb_checkpoints/*' 2>/dev/null)
DEPENDENCIES := pyproject.toml requirements.txt requirements.lock
# The exact version, always: the newest torch may be gigabytes of another build.
TORCH := $(shell grep '^torch==' requirements.txt)
INSTALL = $(BIN)/python -m pip install $(addprefix --constraint ,$(CONSTRAINTS))

FETCH_CHROMIUM = PLAYWRIGHT_DOWNLOAD_CONNECTION_TIMEOUT=10000 \
	$(BIN)/python -m playwright install --only-shell chromium
# In the order of collection: else the few long tests of one file begin last, and one waits.
PYTEST = $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder
NBVAL = --nbval --nbval-current-env --nbval-cell-timeout=120
STRICT = TUTORIAL_LIB_STRICT=1
ONE_THREAD = OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Where it is set, each of the hundreds of processes of a test run compiles the library again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help book serve pdf site-assets test test-site pictures colab-check student coursework-check test-blas test-gpu notebooks bench lint format retarget lock clean browser colab

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s  %s\n", $$1, $$2}' Makefile

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

pdf: book $(PDF)  ## Print the whole book into _build/attention-head-by-head.pdf
	@echo "==> Printing the book with Chromium"
	@$(BIN)/python -m tools.print_book

site-assets: $(MADE)  ## Copy Python into the built site, for hosts that ask no one else (FROM=address)
	@$(BIN)/python -m tools.site_assets $(FROM)

test: browser lint book  ## Check every number, figure, page and test
	@echo "==> Running the tests and every cell of every chapter"
	$(STRICT) $(ONE_THREAD) $(PYTEST) $(NBVAL) -m "not colab and not picture" tests notebooks

test-site: browser $(TEST) book  ## Check the website alone, in a real browser
	@$(PYTEST) -m "not picture" tests/site

pictures: browser book  ## Keep every page as a picture, 320 and 1440 pixels wide
	@$(PYTEST) -m picture tests/site

colab-check: colab  ## Run each notebook alone, in an empty folder, with Colab's versions
	@$(BIN)/python -m pytest -v tests/chapters/test_colab.py

test-blas: $(TEST)  ## Repeat the numeric tests and chapters with two BLAS kernels and 1 and 2 threads
	@$(STRICT) $(BIN)/python -m tools.blas_matrix $(PYTEST) $(NBVAL) -m "not setup" \
		tests/library tests/pytorch tests/practice tests/elements tests/experiments notebooks

test-gpu: $(TEST)  ## Run the tests marked `gpu`, and Part II, on a machine with CUDA
	@$(BIN)/python -c "import sys, torch; sys.exit(not torch.cuda.is_available())" || { \
		echo "make test-gpu needs a CUDA device and a CUDA build of $(TORCH)" >&2; exit 1; }
	$(STRICT) $(PYTEST) -m gpu tests
	names=$$($(BIN)/python -m tools.chapters "Part II") && $(STRICT) $(PYTEST) $(NBVAL) $$names

student: $(BOOK)  ## Write a chapter without its solutions into student/ (CHAPTER=04_heads)
	@$(BIN)/python -m coursework student "$(CHAPTER)"

coursework-check: $(TEST)  ## Hand in every mistake of every assignment to the grader
	@for name in $(patsubst coursework/assignments/%/grading.py,%,$(wildcard coursework/assignments/*/grading.py)); do \
		$(BIN)/python -m coursework check $$name || exit 1; done

notebooks: $(TEST)  ## Run chapters and store their outputs (all, or NB=03_attention_weights)
	@$(STRICT) $(ONE_THREAD) $(BIN)/python -m tools.run_notebooks $(NB)

bench: $(TEST)  ## Measure again what chapters show (all, or BENCH=numpy_attention)
	@for name in $(BENCH); do $(ONE_THREAD) $(BIN)/python -m experiments.$$name || exit 1; done

lint: $(TEST)  ## Check style and formatting
	@echo "==> Checking style and formatting"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

format: $(TEST)  ## Mend style and formatting
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

retarget: $(MADE)  ## Point every link at a fork (REPO=https://github.com/OWNER/NAME)
	@$(BIN)/python -m tools.retarget "$(REPO)"

lock:  ## Renew requirements.lock from requirements.txt (PYTHON=python3.11)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || { \
		echo "The lock is made with Python 3.11, whose versions serve 3.12 to 3.14 too:" \
			"make lock PYTHON=python3.11" >&2; exit 1; }
	@echo "==> Installing everything afresh in $(LOCK_ENV)"
	@$(PYTHON) -m venv --clear $(LOCK_ENV)
	@$(LOCK_ENV)/bin/python -m pip install --constraint requirements.txt \
		"$(TORCH)" ".[book,plot,test,torch]"
	@{ echo "# Every version that requirements.txt brings in. Made by \`make lock\`; not edited by hand."; \
		$(LOCK_ENV)/bin/python -m pip freeze --all --exclude tutorial-lib --exclude pip \
		| sed 's/+[^ ]*$$//'; } > $(LOCK_ENV)/requirements.lock
	@mv $(LOCK_ENV)/requirements.lock requirements.lock
	@rm -rf $(LOCK_ENV)
	@echo "==> requirements.lock is renewed"

clean:  ## Remove the site and the caches (.venv stays)
	@rm -rf _build build dist .pytest_cache .ruff_cache src/*.egg-info
	@find . -name __pycache__ -not -path './$(VENV)*' -prune -exec rm -rf {} +

# A second environment, with Colab's versions.
colab: $(TEST)
	@$(BIN)/python -m tools.colab_environment

# The system's Chromium, or else the one that playwright fetches into its own folder.
browser: $(TEST)
	@for name in chromium-headless-shell chromium chromium-browser; do \
		command -v $$name >/dev/null && exit; done; \
	$(FETCH_CHROMIUM) >/dev/null 2>&1 || echo "==> There is no Chromium here and none could be" \
		"fetched, so the tests of the site in a browser will be SKIPPED. To run them:" \
		"apt-get install chromium-headless-shell"

# The environment is made again when its Python has gone, when the tree has moved, or when another
# Python is named than the one it has. A .venv that make did not make is completed, not emptied.
VERSION := import sys; print("%d.%d" % sys.version_info[:2])
ifneq ($(shell test -x $(BIN)/python && cat $(MADE) 2>/dev/null),$(CURDIR))
.PHONY: $(MADE)
else ifneq ($(filter command environment,$(origin PYTHON)),)
ifneq ($(shell $(PYTHON) -c '$(VERSION)' 2>/dev/null),$(shell $(BIN)/python -c '$(VERSION)'))
.PHONY: $(MADE)
endif
endif

$(MADE):
	@version=$$($(PYTHON) -c '$(VERSION)' 2>/dev/null); \
	case "$$version" in \
		3.11|3.12|3.13|3.14) \
			$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null && exit 0; \
			found="is Python $$version without them";; \
		"") found="does not start";; \
		*) found="is Python $$version";; \
	esac; \
	echo "The book needs Python 3.11, 3.12, 3.13 or 3.14 with venv and ensurepip, and $(PYTHON) $$found:" \
		"install one (Debian: apt-get install python3 python3-venv) and name it, for example" \
		"make $(or $(firstword $(MAKECMDGOALS)),book) PYTHON=python3.12" >&2; \
	exit 1
	@echo "==> Making the environment $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(if $(wildcard $(MADE)),--clear) $(VENV)
	@echo "$(CURDIR)" > $@

$(BOOK): $(MADE) $(DEPENDENCIES)
	@echo "==> Installing what the site needs (the first time: a minute or two)"
	@$(INSTALL) --editable ".[book,plot]"
	@touch $@

$(PDF): $(BOOK)
	@echo "==> Installing what printing needs"
	@$(INSTALL) --editable ".[pdf]"
	@touch $@

$(TEST): $(BOOK)
	@echo "==> Installing what the tests need, $(TORCH) among it (the first time: some minutes)"
	@$(INSTALL) "$(TORCH)" --editable ".[test,torch]"
	@$(BIN)/python -c "import matplotlib.font_manager"  # its first use prints a line, which a cell must not
	@touch $@
