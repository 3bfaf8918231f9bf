# `make book` and `make test` do their own set-up: Python >= 3.11 and make are enough.
# Everything runs as `python -m tool`, so that a path with spaces is no trouble.

# Without bytecode every process compiles the library and its tests anew.
export PYTHONDONTWRITEBYTECODE :=

PYTHON := .venv/bin/python
UV := $(PYTHON) -m uv pip
NOTEBOOKS := $(wildcard notebooks/*.ipynb notebooks/solutions/*.ipynb)
SYNC := --quiet --python $(PYTHON)
LOCK := $(UV) compile --quiet --universal --python-version 3.11 --generate-hashes --upgrade
# All extras but bench, which needs a compiler.
EXTRAS := plot text train certify peers embeddings parquet zstd book test scale

.PHONY: help book site slides class quick test test-all pythons proofs bench dist format lab lock clean

help:
	@echo "make book    run lectures 00 to 09 and stale ones, build the site; ALL=1 runs all"
	@echo "make slides  build the site with a deck of slides and a handout for each lecture"
	@echo "make class   pack the course without solutions into _build/class.zip"
	@echo "make quick   check what changed since main: style, types, tests of the folders touched"
	@echo "make test    check style, types, tests, site, and that the notebooks are up to date"
	@echo "make test-all run slow tests and every notebook too"
	@echo "make pythons set up, build notebooks and run quick tests on the machine's other Pythons"
	@echo "make proofs  check the machine-checked proofs (needs Coq with Coquelicot)"
	@echo "make bench   install the rivals of the benchmarks (needs a C++ compiler)"
	@echo "make dist    build the sdist and the wheel into dist, and check what is released"
	@echo "make lab     open JupyterLab on the notebooks"
	@echo "make format  format the code, that of the notebooks' sources too"
	@echo "make lock    resolve requirements/lock.txt anew (for maintainers, needs the network)"
	@echo "make clean   remove what the other commands built, but not .venv"
	@echo "The first of them makes .venv and installs the locked packages there."

book: .venv/ready
	@$(PYTHON) -m qdtheory check --quality BLEU-2 --diversity Self-BLEU-2
	@$(PYTHON) -m nbconvert --log-level=ERROR --to html --output-dir _build \
	    notebooks/00b_one_sitting.ipynb
	@echo "While the book is built, read $(CURDIR)/_build/00b_one_sitting.html"
	@$(PYTHON) notebooks/build.py $(if $(ALL),--all)
	@$(MAKE) --no-print-directory site

# Generated API pages and pages of deleted notebooks must not survive a build.
site: .venv/ready
	@rm -rf docs/generated _build/html
	@echo "Building the site"
	@$(PYTHON) -m sphinx -q -W --keep-going -j auto -c docs -d _build/doctrees . _build/html
	@echo "Open $(CURDIR)/_build/html/docs/index.html"

slides: site
	@echo "Slides are in $(CURDIR)/_build/html/slides/index.html, handouts beside them"

# The notebooks as committed: their stubs are open.
class: .venv/ready
	@$(PYTHON) docs/course_pages.py

quick: .venv/ready
	@$(PYTHON) tests/quick.py

define CHECK
	$(PYTHON) -m ruff check
	$(PYTHON) -m ruff format --check
	$(PYTHON) -m ruff format --check --line-length 76 $(NOTEBOOKS)
	$(PYTHON) -m pyright & types=$$!; \
	$(PYTHON) -m pytest -q -n 2 --dist worksteal $(1) && wait $$types
endef

test: .venv/ready
	$(CHECK)

test-all: .venv/ready
	$(call CHECK,--all --cost)

# Elsewhere and from nothing, since the lock holds other packages for them.
pythons: .venv/ready
	$(PYTHON) tests/other_pythons.py

# The last file prints the axioms; no others than these may be among them.
PROOFS := Sums Theorem1 Theorem3 Theorem2 LogitTheorem TwoErrors Counterexample Assumptions
AXIOMS := ClassicalDedekindReals.sig_forall_dec ClassicalDedekindReals.sig_not_dec \
    Classical_Prop.classic FunctionalExtensionality.functional_extensionality_dep

proofs:
	@command -v coqc > /dev/null || { \
	    echo "make proofs needs Coq 8.16 or newer and Coquelicot" \
	        "(Debian, Ubuntu: apt-get install coq libcoq-coquelicot)." >&2; exit 1; }
	@mkdir -p _build/proofs && cp proofs/*.v _build/proofs
	@cd _build/proofs && for name in $(PROOFS); do \
	    coqc -w -all -Q . QD $$name.v > $$name.log || exit 1; done
	@printf '%s\n' Axioms: $(AXIOMS) | sort > _build/proofs/allowed
	@cd _build/proofs && sed -n 's/^\([^ ]\{1,\}\).*/\1/p' Assumptions.log | sort -u > found && \
	    comm -23 found allowed > more && \
	    if [ -s more ]; then echo "Axioms that are not allowed:" >&2; cat more >&2; exit 1; fi
	@echo "$$(grep -c '^Print' proofs/Assumptions.v) theorems; their axioms are those of the reals and classical logic"

bench: .venv/ready
	$(UV) install $(SYNC) --no-deps --require-hashes -r requirements/bench.txt
	@echo "Now run one of benchmarks/*.py, as benchmarks/README.md says."

# The tools have an environment of their own, so that .venv stays what the lock says.
dist: .venv/ready
	@test -e _build/release/bin/python || $(PYTHON) -m venv --without-pip _build/release
	@$(UV) install --quiet --python _build/release/bin/python --require-hashes \
	    -r requirements/release.txt
	@rm -rf dist
	$(PYTHON) tests/release.py dist
	_build/release/bin/python -m twine check --strict dist/*
	_build/release/bin/python recipe/render.py

format: .venv/ready
	$(PYTHON) -m ruff check --fix
	$(PYTHON) -m ruff format
	$(PYTHON) -m jupytext --quiet --pipe '$(PYTHON) -m ruff format --line-length 76 -' \
	    notebooks/src/*.md

lab: .venv/ready
	@$(PYTHON) -m jupyterlab --notebook-dir notebooks

lock: .venv/ready
	$(LOCK) $(EXTRAS:%=--extra %) pyproject.toml requirements/more.in -o requirements/lock.txt
	$(LOCK) --no-deps --extra bench -c requirements/lock.txt pyproject.toml -o requirements/bench.txt
	$(LOCK) requirements/release.in -o requirements/release.txt

clean:
	rm -rf _build docs/generated .jax_cache .pytest_cache .ruff_cache .hypothesis

# The stamp holds the folder it was made for. An environment that was moved, only
# half made, or whose Python is gone is made anew; a changed lock is synchronised.
# What is installed is remembered in .venv/lock.txt: uv asks the network about every
# package, even one that is there.
STAMP := $(shell $(PYTHON) -c '' 2>/dev/null && cat .venv/ready 2>/dev/null)
ifneq ($(STAMP),$(CURDIR))
.PHONY: .venv/ready
endif

.venv/ready: requirements/lock.txt pyproject.toml
ifneq ($(STAMP),$(CURDIR))
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "qdtheory needs Python 3.11 or newer as python3 on PATH." >&2; exit 1; }
	@python3 -c 'import ensurepip, venv' 2>/dev/null || { \
	    echo "python3 has no venv module (Debian, Ubuntu: apt-get install python3-venv)." >&2; exit 1; }
	@echo "Making the virtual environment .venv"
	@python3 -m venv --clear .venv
endif
	@cmp -s requirements/lock.txt .venv/lock.txt || { \
	    echo "Installing the packages of requirements/lock.txt into .venv" && \
	    sed -n '/^uv==/,/# via/p' requirements/lock.txt > .venv/uv.txt && \
	    $(PYTHON) -m pip install --quiet --disable-pip-version-check \
	        --require-hashes -r .venv/uv.txt && \
	    $(UV) sync $(SYNC) --require-hashes requirements/lock.txt && \
	    cp requirements/lock.txt .venv/lock.txt; }
	@$(UV) install $(SYNC) --no-deps --no-build-isolation --offline -e .
	@echo '$(CURDIR)' > $@
