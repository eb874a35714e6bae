# SPDX-License-Identifier: Apache-2.0
# Every target that runs something makes its environment first; the second time that takes a
# second and changes nothing. PYTHON=... chooses the Python (3.10 to 3.13) of a new one.
SHELL := /bin/bash
.DEFAULT_GOAL := help

VENV_PYTHON := .venv/bin/python
# Quick tests first: a broken tool should not wait for the engines to be seen.
SLOW_TESTS := $(wildcard tests/exactness tests/engine)
TESTS ?= $(filter-out $(SLOW_TESTS),$(patsubst %/,%,$(sort $(wildcard tests/*/)))) $(SLOW_TESTS)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: bootstrap
bootstrap: ## make .venv, unpack the pinned SGLang and apply the patches
	@scripts/bootstrap.sh

.PHONY: demo
demo: bootstrap ## answer one chat with DDTREE, then compare it with DFLASH and with neither
	@$(VENV_PYTHON) scripts/demo/run.py $(DEMO_ARGS)

.PHONY: serve
serve: bootstrap ## leave a DDTREE server running on this machine (PORT=N)
	@$(VENV_PYTHON) scripts/demo/serve.py $(SERVE_ARGS)

.PHONY: test
test: bootstrap ## run the tests (TESTS=tests/tool and PYTEST_ARGS="-x -k name" narrow it)
	@$(VENV_PYTHON) -m pytest $(TESTS) $(PYTEST_ARGS)

.PHONY: lint
lint: bootstrap ## check Python, shell, patches and the names in patched upstream files
	@scripts/lint.sh

.PHONY: models
models: bootstrap ## train the tiny model pair again
	@$(VENV_PYTHON) -m models.train $(MODELS_ARGS)

.PHONY: bench
bench: bootstrap ## measure the sampled verify step, into build/bench
	@$(VENV_PYTHON) -m bench.sampling $(BENCH_ARGS)

.PHONY: clean
clean: ## remove caches and build/
	rm -rf build .pytest_cache .ruff_cache
	find models requirements scripts tests -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: distclean
distclean: clean ## remove .venv and the unpacked SGLang as well, with any edits in it
	rm -rf .venv
	find sglang -mindepth 1 -maxdepth 1 ! -name README.md -exec rm -rf {} +
