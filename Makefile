# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint bench lock clean

# What a user needs, and nothing more.
$(VENV)/core.stamp: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

# What the tests need, at the versions of the lock file.
$(VENV)/dev.stamp: pyproject.toml requirements-dev.lock
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]' --constraint requirements-dev.lock
	touch $@ $(VENV)/core.stamp

demo: $(VENV)/core.stamp  ## photos to report on the offline default
	$(BIN)/counterfoil demo --out demo

lint: $(VENV)/dev.stamp  ## ruff, mypy strict, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint  ## everything that CI runs
	$(BIN)/pytest

bench: $(VENV)/dev.stamp  ## ratios against what people run today; PHOTOS=folder of class folders for more photos
	$(BIN)/python -m pip install --quiet -r bench/requirements.txt
	$(BIN)/python bench/evaluate.py $(PHOTOS)
	$(BIN)/python bench/job.py $(PHOTOS)

lock: $(VENV)/dev.stamp  ## renew the lock file from what is installed
	$(BIN)/python -m pip install --quiet --upgrade --upgrade-strategy eager --editable '.[dev]'
	$(BIN)/python -m pip freeze --exclude-editable > requirements-dev.lock

clean:
	rm -rf $(VENV) demo build
