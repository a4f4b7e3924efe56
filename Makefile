# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MINOR := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
LOCK := $(wildcard requirements/lock-$(MINOR).txt)

.PHONY: demo test check quick lint bench gallery rooms lock clean

# What a user needs, and nothing more.
$(VENV)/core.stamp: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

# What the tests need, at the versions of the lock file of this Python.
$(VENV)/dev.stamp: pyproject.toml $(LOCK)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]' $(addprefix --constraint ,$(LOCK))
	touch $@ $(VENV)/core.stamp

demo: $(VENV)/core.stamp  ## photos to report on the offline default
	$(BIN)/counterfoil demo --out demo

lint: $(VENV)/dev.stamp  ## ruff, mypy strict, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint  ## everything that CI runs; COVERAGE=1 measures lines and branches and holds them to the floor
	$(BIN)/pytest $(if $(COVERAGE),--cov --cov-report=term)

check: $(VENV)/dev.stamp  ## the quick half: the linters and the quick tests side by side
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target lint quick

quick: $(VENV)/dev.stamp  ## the tests that need no network, browser, database or torch and are not slow
	$(BIN)/pytest -m "not slow and not browser and not postgres and not torch and not ray"

bench: $(VENV)/dev.stamp  ## ratios against what people run today; PHOTOS=folder of class folders for more photos
	$(BIN)/python -m pip install --quiet -r bench/requirements.txt
	$(BIN)/python bench/evaluate.py $(PHOTOS)
	$(BIN)/python bench/job.py $(PHOTOS)
	$(BIN)/python bench/analyse.py
	$(BIN)/python bench/edits.py
	$(BIN)/python bench/paint.py

gallery: $(VENV)/core.stamp  ## every edit on four free photos, into docs/gallery
	$(BIN)/python docs/gallery/make_gallery.py
	$(BIN)/python docs/gallery/make_painted.py

rooms: $(VENV)/core.stamp  ## what docs/architecture.md takes from the code: the figure of the rooms, line numbers
	$(BIN)/python docs/figures/draw_rooms.py
	$(BIN)/python docs/figures/renew_references.py

lock:  ## renew the lock file of this Python: the newest of everything (uv, since pip searches for an hour on 3.10)
	rm -rf build/lock && $(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet uv
	build/lock/bin/uv pip compile --quiet --upgrade --no-header --no-annotate --extra dev --python-version $(MINOR) \
		--output-file requirements/lock-$(MINOR).txt pyproject.toml

clean:
	rm -rf $(VENV) demo build
