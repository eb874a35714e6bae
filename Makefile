# SPDX-License-Identifier: Apache-2.0
# Every target that runs something makes its environment first; the second time that takes a
# second and changes nothing. PYTHON=... chooses the Python (3.10 to 3.13) of a new one, and
# RELEASE=... a release of upstream.toml, which has an environment of its own.
SHELL := /bin/bash
.DEFAULT_GOAL := help

DEFAULT_RELEASE := $(shell scripts/releases.sh default)
RELEASE := $(DEFAULT_RELEASE)
VENV := $(shell scripts/releases.sh venv '$(RELEASE)' 2>&1)
ifneq ($(.SHELLSTATUS),0)
$(error $(VENV))
endif
VENV_PYTHON := $(VENV)/bin/python

# Quick tests first: a broken tool should not wait for the engines to be seen.
SLOW_TESTS := $(wildcard tests/exactness tests/engine)
ALL_TESTS := $(filter-out $(SLOW_TESTS),$(patsubst %/,%,$(sort $(wildcard tests/*/)))) $(SLOW_TESTS)
# These do not depend on the release, so the default one's run is enough.
TOOL_TESTS := $(addprefix tests/,bootstrap ci container gpucheck requirements signatures tool)
ifneq ($(RELEASE),$(DEFAULT_RELEASE))
ALL_TESTS := $(filter-out $(TOOL_TESTS),$(ALL_TESTS))
endif
TESTS ?= $(filter-out $(EXCEPT),$(ALL_TESTS))

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "  RELEASE=R, one of: $(strip $(shell scripts/releases.sh)) (default: $(DEFAULT_RELEASE))"

.PHONY: bootstrap
bootstrap: ## make the environment, unpack the pinned SGLang and apply the patches
	@scripts/bootstrap.sh --release $(RELEASE)

.PHONY: demo
demo: bootstrap ## answer one chat with DDTREE, then compare it with DFLASH and with neither
	@$(VENV_PYTHON) scripts/demo/run.py $(DEMO_ARGS)

.PHONY: serve
serve: bootstrap ## leave a DDTREE server running on this machine (PORT=N)
	@$(VENV_PYTHON) scripts/demo/serve.py $(SERVE_ARGS)

.PHONY: test
test: bootstrap ## run the tests (TESTS=DIR, EXCEPT=DIR and PYTEST_ARGS="-x -k name" narrow it)
	@$(VENV_PYTHON) -m pytest $(TESTS) $(PYTEST_ARGS)

# The tools are the default release's, whatever RELEASE says: findings must not depend on it.
.PHONY: lint
lint: ## check Python, shell, Dockerfile, patches and names in patched files, of all releases
	@scripts/bootstrap.sh
	@scripts/lint.sh

.PHONY: report
report: ## how each patch fares on another SGLang (ONTO=latest, a version, a wheel, a folder)
	@RELEASE=$(RELEASE) ci/report_release.sh $(or $(ONTO),latest)

.PHONY: models
models: bootstrap ## train the tiny model pair again
	@$(VENV_PYTHON) -m models.train $(MODELS_ARGS)

.PHONY: bench
bench: bootstrap ## measure the sampled verify step, into build/bench
	@$(VENV_PYTHON) -m bench.sampling $(BENCH_ARGS)

.PHONY: gpu-check
gpu-check: bootstrap ## check what only a GPU can say (GPU_CHECK_ARGS="--python PYTHON ...")
	@scripts/gpu_check.sh --release $(RELEASE) $(GPU_CHECK_ARGS)

.PHONY: cu128-check
cu128-check: bootstrap ## install the CUDA 12.8 lock (11 GB) and load what it can without a GPU
	@ci/cu128_check.sh

# The same file for both profiles, and for CI: only build arguments differ.
PROFILE ?= cu128
IMAGE ?= sglang-ddtree:$(RELEASE)-$(PROFILE)
.PHONY: image
image: ## build the image that `docker run` serves (PROFILE=cu128 or cpu, IMAGE=name)
	@id=$$(cd scripts && python3 -m container.series_id $(RELEASE)) && \
	docker buildx build --load --tag $(IMAGE) --build-arg PROFILE=$(PROFILE) \
	  --build-arg RELEASE=$(RELEASE) --build-arg SERIES_ID="$$id" $(IMAGE_ARGS) .

.PHONY: image-check
image-check: bootstrap ## build the CPU image without Docker and check what it does (root, Debian)
	@ci/container.sh --release $(RELEASE) $(IMAGE_CHECK_ARGS)

.PHONY: clean
clean: ## remove caches and build/
	rm -rf build .pytest_cache .ruff_cache
	find bench ci models requirements scripts tests -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: distclean
distclean: clean ## remove all environments and unpacked SGLangs as well, with any edits in them
	rm -rf .venv .venv-*
	find sglang -mindepth 1 -maxdepth 1 ! -name README.md -exec rm -rf {} +
