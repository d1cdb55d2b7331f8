# make lab            copies of the pages to work in, in JupyterLab (LAB='--no-browser --port 8890')
# make book           execute the chapters and make the site in _build/html
#   CHAPTERS=capture/capture_timing   only these, of test-live, outputs and soak too
#   SIZE=laptop|workstation           how much they compute
# make test           all checks        make test-live   the same outputs from a real kernel
# make outputs        show how checked outputs changed, and accept them (ACCEPT=1: do not ask)
# make bench          measurements      make clean       remove what was built
# make soak           distributed cells of each kind RUNS=50 times, chapters five times
# PYTHON=python3.12 and VENV=/path choose the Python and the place of the environment.

PYTHON =
VENV = .venv
PY = $(VENV)/bin/python
BUILD = $(PY) -m helpers $(1) $(CHAPTERS) $(if $(SIZE),--size $(SIZE))

.PHONY: lab book test units pages test-live outputs bench soak clean

lab: $(VENV)/.ready
	@$(PY) -m helpers lab $(LAB)

book: $(VENV)/.ready
	@$(call BUILD,build)

# A reference older than its chapter is found first: it takes seconds, the rest an hour.
# Then two streams, since tests and chapters wait as often as they compute. What the tests print
# is kept until they end, so that a log shows one thing at a time.
test: $(VENV)/.ready
	$(PY) -m helpers lint
	$(PY) -m pytest -q tests/test_outputs.py -k own_references
	@$(MAKE) --no-print-directory -j 2 units pages
	$(PY) -m pytest -n 2 tests/test_browser_site.py

units: $(VENV)/.ready
	@mkdir -p _build
	@$(PY) -m pytest tests --ignore tests/test_browser_site.py >_build/units.log 2>&1; \
		code=$$?; cat _build/units.log; exit $$code

pages: $(VENV)/.ready
	$(PY) -m helpers build
	$(PY) -m helpers check

test-live: $(VENV)/.ready
	$(PY) -m helpers check --live $(CHAPTERS)

outputs: $(VENV)/.ready
	@$(call BUILD,outputs) $(if $(ACCEPT),--accept)

bench: $(VENV)/.ready
	$(PY) -m pytest -s -o python_files='bench_*.py' tests

soak: $(VENV)/.ready
	$(PY) -m pytest -s -o python_files='soak_*.py' tests
	for run in 1 2 3 4 5; do $(PY) -m helpers check --live $(CHAPTERS) || exit 1; done

clean:
	rm -rf _build

$(VENV)/.ready: requirements.txt pyproject.toml
	@sh src/make_venv.sh "$(PYTHON)" "$(VENV)"
