# Needs Python 3.11 to 3.13 and make; no compiler. `make help` lists the targets.
PYTHON ?= python3
# More arguments for pytest: make test ARGS="tests/store -k crash"
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
PROTO_VENV := .venv-proto
LOCK_VENV := .venv-lock
OLDEST_VENV := .venv-oldest
UV_VERSION := 0.13.9

PROTO_OUT := proto/python
# The API as it was frozen; `make lint` refuses a breaking change against it once it exists.
PROTO_IMAGE := proto/memoryranker.v1.binpb

# Hash-checked, and wheels only: no source is ever built, so no compiler is needed.
PIP_INSTALL := -m pip install --disable-pip-version-check --require-hashes --only-binary :all:

.DEFAULT_GOAL := help
.PHONY: help setup demo docs test soak bench peers learning-bench clients deploy-check client-oldest lint format proto proto-check proto-freeze lock clean
.DELETE_ON_ERROR:

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.installed ## install everything into .venv (once; instant afterwards)

demo: setup ## show what it does, in a minute, on made-up memories
	@$(BIN)/memory-ranker demo

# A folder with a short path: sockets are made in it. The vocabularies hold the token counter to real tokenizers,
# one embedder is a real model, the oracles are others' implementations of what we compute, and uv (which LOCK_VENV has)
# fills the empty environments that the wheel is tried in.
test: setup $(VENV)/.tokenizers $(VENV)/.models $(VENV)/.browser $(VENV)/.oracles $(LOCK_VENV)/.installed ## run the tests
	@folder=$$(mktemp -d /tmp/mrt.XXXXXX) && trap 'rm -rf "$$folder"' EXIT \
	&& $(BIN)/pytest -n 2 --basetemp "$$folder/t" $(ARGS)

soak: setup ## run at length the tests that look for what happens rarely (about 20 minutes)
	@SOAK=1 $(BIN)/pytest -n 2 --timeout 1800 tests/crash tests/promises $(ARGS)

bench: setup ## measure speed as ratios within one run: build/bench.json (about 10 minutes; ARGS=--short for CI's form)
	@$(BIN)/python -m tests.bench $(ARGS)

# A language whose tools are missing is skipped, and is a failure in CI.
clients: setup ## build and try clients in five languages (about 5 minutes the first time; needs Go, Node, Java with Maven, Rust)
	@CLIENTS=1 $(BIN)/pytest --durations 10 tests/clients/test_conformance.py $(ARGS)

# A tool that is missing is a failure in CI; elsewhere what needs it is skipped, and how to get it is said.
deploy-check: setup $(VENV)/.deploy ## lint deploy/, build the image on a bare Debian and use it (minutes; the image needs root)
	@DEPLOY=1 $(BIN)/pytest --durations 10 tests/deploy $(ARGS)

learning-bench: setup ## measure what learning comes to: docs/figures.md, build/learning.json (about an hour; ARGS=--short)
	@$(BIN)/python -m training.learning_bench $(ARGS)

peers: .venv-peers/.installed ## install the libraries that `make bench ARGS=--peers` measures beside ours (500 MB)

client-oldest: $(OLDEST_VENV)/.installed ## check the client on the oldest supported grpcio and protobuf
	@PYTHONPATH=$(PROTO_OUT) $(OLDEST_VENV)/bin/python -W error tests/clients/import_alone.py

lint: setup proto-check ## check style, types, imports and the API
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/buf lint proto
	$(BIN)/buf format proto --exclude-path proto/google -d --exit-code
	$(if $(wildcard $(PROTO_IMAGE)),$(BIN)/buf breaking proto --against $(PROTO_IMAGE))

format: setup ## rewrite the code and the .proto files in the house format
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/buf format proto --exclude-path proto/google -w

docs: setup ## make the pages and pictures in docs/ that are made from code
	@$(BIN)/python -m sidecar.cli.reference > docs/cli.md
	@$(BIN)/python docs/make_api.py > docs/api.md
	@$(BIN)/python docs/make_settings.py > docs/settings.md
	@$(BIN)/python docs/pictures.py

proto: $(PROTO_VENV)/.installed ## regenerate proto/python/memoryranker/v1
	@rm -f $(PROTO_OUT)/memoryranker/v1/*_pb2*
	@$(call protoc,$(PROTO_OUT))

proto-check: $(PROTO_VENV)/.installed
	@tmp=$$(mktemp -d) && trap 'rm -rf "$$tmp"' EXIT && $(call protoc,$$tmp) \
	&& diff -ru --exclude=__init__.py --exclude=__pycache__ "$$tmp/memoryranker/v1" $(PROTO_OUT)/memoryranker/v1 \
	|| { echo "proto/python/memoryranker/v1 is stale: run 'make proto' and commit the result." >&2; exit 1; }

proto-freeze: setup ## record the API that later changes must not break
	$(BIN)/buf build proto --path proto/memoryranker -o $(PROTO_IMAGE)

lock: $(LOCK_VENV)/.installed ## resolve the requirement files anew
	$(call lock,dev,--all-extras --python-version 3.11)
	$(call lock,protogen,--python-version 3.11)
	$(call lock,oldest,--python-version 3.11)
	UV_CUSTOM_COMPILE_COMMAND="make lock" $(LOCK_VENV)/bin/uv pip compile --quiet --upgrade --universal --generate-hashes \
	--no-annotate --no-emit-index-url --python-version 3.11 tests/bench/requirements/peers.in -o tests/bench/requirements/peers.txt
	$(call lock,build,--python-version 3.11)
	$(call lock,deploy,--python-version 3.11)
	$(call lock,run,--python-version 3.11)
	$(call lock,train,--extra train --python-version 3.11)

clean: ## remove what the other targets made
	rm -rf $(VENV) $(PROTO_VENV) $(LOCK_VENV) $(OLDEST_VENV) build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The argument: the folder to write to. Only files with a service get stubs.
protoc = export PATH="$(CURDIR)/$(PROTO_VENV)/bin:$$PATH" \
	&& python -m grpc_tools.protoc -I proto --python_out=$(1) --pyi_out=$(1) proto/memoryranker/v1/*.proto \
	&& python -m grpc_tools.protoc -I proto --grpc_python_out=$(1) --mypy_grpc_out=quiet,generate_concrete_servicer_stubs:$(1) \
	$$(grep -l '^service ' proto/memoryranker/v1/*.proto)

# The arguments: the requirement file, how to read pyproject.toml.
lock = UV_CUSTOM_COMPILE_COMMAND="make lock" $(LOCK_VENV)/bin/uv pip compile --quiet --upgrade --universal --generate-hashes \
	--no-annotate --no-emit-index-url $(if $(filter dev run train,$(1)),pyproject.toml) $(if $(filter run train,$(1)),,--group $(1)) $(2) -o requirements/$(1).txt

# The argument: the folder of the virtual environment. One that works is kept.
define make_venv
	@$(1)/bin/python -c '' 2>/dev/null || { \
	$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null || { \
	echo "memory-ranker needs Python 3.11 to 3.13; $(PYTHON) is: $$($(PYTHON) --version 2>&1 || true)" >&2; \
	echo "Name another one: make $(or $(MAKECMDGOALS),setup) PYTHON=python3.12" >&2; exit 1; }; \
	$(PYTHON) -m venv --clear $(1) || { \
	echo "Python cannot make a virtual environment here (on Debian and Ubuntu: apt install python3-venv)." >&2; exit 1; }; }
endef

$(VENV)/.tokenizers $(VENV)/.models $(VENV)/.browser $(VENV)/.deploy: $(VENV)/.%: requirements/%.txt $(VENV)/.installed
	@$(BIN)/python $(PIP_INSTALL) --no-deps -r $<
	@touch $@

# One of them comes as source: it is built by what stands before it in the file.
$(VENV)/.oracles: requirements/oracles.txt $(VENV)/.installed
	@grep -A1 '^setuptools' $< > $@.tools && $(BIN)/python $(PIP_INSTALL) --quiet -r $@.tools
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet --require-hashes --no-deps --no-build-isolation -r $<
	@mv $@.tools $@

$(VENV)/.installed: requirements/dev.txt pyproject.toml
	$(call make_venv,$(VENV))
	@echo "Installing what memory-ranker needs into $(VENV) (about 200 MB to download, a minute)"
	@$(BIN)/python $(PIP_INSTALL) -r requirements/dev.txt
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation -e .
	@touch $@

$(PROTO_VENV)/.installed: requirements/protogen.txt
	$(call make_venv,$(PROTO_VENV))
	@$(PROTO_VENV)/bin/python $(PIP_INSTALL) --quiet -r $<
	@touch $@

.venv-peers/.installed: tests/bench/requirements/peers.txt
	$(call make_venv,.venv-peers)
	@.venv-peers/bin/python $(PIP_INSTALL) --quiet -r $<
	@touch $@

$(OLDEST_VENV)/.installed: requirements/oldest.txt
	$(call make_venv,$(OLDEST_VENV))
	@$(OLDEST_VENV)/bin/python $(PIP_INSTALL) --quiet -r $<
	@touch $@

$(LOCK_VENV)/.installed: Makefile
	$(call make_venv,$(LOCK_VENV))
	@$(LOCK_VENV)/bin/python -m pip install --disable-pip-version-check --quiet uv==$(UV_VERSION)
	@touch $@
