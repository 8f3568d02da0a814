# Python >= 3.11 and make are all this needs; with cargo on PATH the native core is built as well.
# `make help` lists the targets.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --constraint .ci/constraints.txt --no-build-isolation

# ABOUT and TURNS travel to the command through the environment, exactly as they were given: `value` keeps make from
# expanding them, and they are kept out of MAKEFLAGS, which would need the room of a long text twice.
# Without ABOUT an example is played; ABOUT="" is the empty text.
ABOUT_ORIGIN := $(origin ABOUT)
override ABOUT := $(value ABOUT)
override TURNS := $(value TURNS)
export ABOUT TURNS
MAKEOVERRIDES :=

DESCRIPTION = if [ "$(ABOUT_ORIGIN)" = undefined ]; then cat examples/description.txt; else printf '%s' "$$ABOUT"; fi

ROUNDS ?= 3

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help:  ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-19s %s\n", $$1, $$2 }' Makefile

.PHONY: play
play: $(VENV)/installed native  ## Turn a description into a scenario and play it: ABOUT="any text" TURNS=5
	@{ $(DESCRIPTION); } | $(BIN)/peripety play --auto --turns "$${TURNS:-5}" --description -

.PHONY: play-llm
play-llm: $(VENV)/installed-llm native  ## The same with a real language model on this machine (about 350 MB)
	@{ $(DESCRIPTION); } | BIN=$(BIN) examples/local-model

.PHONY: testgen-llm
testgen-llm: $(VENV)/installed-llm native  ## Have that model write tests of an example, and see how good they are: ROUNDS=3
	@BIN=$(BIN) examples/local-model testgen generate --file examples/testgen/scenario.md \
	  --scenario examples/scenario.json --no-baseline --max-rounds $(ROUNDS) --max-time 900

.PHONY: serve
serve: $(VENV)/installed native  ## Serve all services in one process
	@$(BIN)/peripety serve all

# One more than there are cores: many tests wait for a disk or another process.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(os.cpu_count() + 1)')

.PHONY: test
test: $(VENV)/installed-dev native test-core  ## Run every test, in one process more than there are cores: WORKERS=3
	@$(BIN)/python -m pytest --ignore=tests/bench --numprocesses $(WORKERS) --dist worksteal

.PHONY: test-llm
test-llm: $(VENV)/installed-dev $(VENV)/installed-llm native  ## Test the gateway with a real language model on this machine (about 350 MB)
	@PERIPETY_REQUIRE_LLM=1 $(BIN)/python -m pytest tests/integration/gateway/test_local_server.py

.PHONY: test-core
test-core:
	@.ci/cargo test --quiet --manifest-path simcore/Cargo.toml

.PHONY: conformance
conformance: $(VENV)/installed-dev native  ## Write docs/reference/llmsim-conformance.md from a run of the official SDKs
	@PYTHONPATH=tests $(BIN)/python -m conformance.simulator.publish

.PHONY: certificates
certificates: $(VENV)/installed-dev native  ## Write the worked example of docs/reference/certificate-format.md and the golden certificate
	@PYTHONPATH=tests $(BIN)/python -m conformance.certificates

.PHONY: findings
findings: $(VENV)/installed-dev  ## Write the tables of docs/reference/findings.md
	@PYTHONPATH=tests $(BIN)/python -m conformance.findings

.PHONY: worked-example
worked-example: $(VENV)/installed-dev native  ## Write what is printed and drawn in the worked example of docs/tutorials/first-scenario.md
	@PYTHONPATH=tests $(BIN)/python -m conformance.worked_example

.PHONY: check
check: check-python check-contract check-generated check-imports check-rust  ## Run every static check

.PHONY: check-python
check-python: $(VENV)/installed-dev
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy services simcore/python tests protos docs
	$(BIN)/python -m pytest --quiet tests/unit/test_no_nouns.py

.PHONY: check-contract
check-contract: $(VENV)/installed-dev
	cd protos && ../$(BIN)/buf lint
	cd protos && ../$(BIN)/buf format --diff --exit-code

.PHONY: check-generated
check-generated: $(VENV)/installed-dev
	$(BIN)/python protos/generate.py --check
	$(BIN)/python protos/error_reasons.py --check
	$(BIN)/python docs/generate_reference.py --check
	$(BIN)/python -m peripety.engine.schemas --check

.PHONY: check-imports
check-imports: $(VENV)/installed-dev
	$(BIN)/lint-imports --no-logo

.PHONY: check-rust
check-rust:
	@.ci/cargo fmt --check --manifest-path simcore/Cargo.toml
	@.ci/cargo fmt --check --manifest-path simcore/crates/simcore-py/Cargo.toml
	@.ci/cargo fmt --check --manifest-path simcore/benches/Cargo.toml
	@.ci/cargo fmt --check --manifest-path simcore/fuzz/Cargo.toml
	@.ci/cargo clippy --quiet --all-targets --manifest-path simcore/Cargo.toml -- --deny warnings
	@.ci/cargo clippy --quiet --all-targets --manifest-path simcore/crates/simcore-py/Cargo.toml -- --deny warnings
	@.ci/cargo clippy --quiet --all-targets --manifest-path simcore/benches/Cargo.toml -- --deny warnings

.PHONY: bench
bench: $(VENV)/installed-bench native  ## Run the benchmarks and print their figures
	@rm -rf build/bench
	@PYTHONPATH=tests $(BIN)/python -m bench.reference simcore/benches/target/specs
	@simcore/benches/run build/bench
	@$(BIN)/python -m pytest tests/bench --capture=no --benchmark-timer=time.process_time
	@PYTHONPATH=tests $(BIN)/python -m bench.table

AIMOCK := build/aimock/node_modules/@copilotkit/aimock

.PHONY: bench-simulator
bench-simulator: $(VENV)/installed-dev native  ## Measure the scripted LLM's server, beside aimock if npm is there
	@[ -d $(AIMOCK) ] || { command -v npm >/dev/null && \
	  npm install --silent --no-audit --no-fund --prefix build/aimock '@copilotkit/aimock@^1.43'; } || \
	  echo "*** aimock could not be installed: nothing to compare with (it needs Node.js and npm)" >&2
	@PYTHONPATH=tests $(BIN)/python -m bench.simulator $(AIMOCK)

.PHONY: bench-balance
bench-balance: $(VENV)/installed-dev native  ## Balance a hundred random specifications, and say how many come out where they should
	@PYTHONPATH=tests $(BIN)/python -m bench.balance

DESCRIPTIONS ?=

.PHONY: bench-generation
bench-generation: $(VENV)/installed-dev $(VENV)/installed-llm native  ## Write scenarios with the model on this machine, and with scripted ones: DESCRIPTIONS=file, a line each
	@PYTHONPATH=tests $(BIN)/python -m bench.generation $(DESCRIPTIONS)

.PHONY: bench-prompt-cache
bench-prompt-cache: $(VENV)/installed-dev  ## What a conversation's prompts cost, by where their cache markers stand
	@PYTHONPATH=tests $(BIN)/python -m bench.prompt_cache

.PHONY: bench-http-clients
bench-http-clients: $(VENV)/installed-bench  ## Measure HTTP clients that could ask providers, beside the one that does
	@PYTHONPATH=tests $(BIN)/python -m bench.http_clients

LITELLM := build/litellm/bin/litellm

.PHONY: bench-gateway
bench-gateway: $(VENV)/installed-dev native  ## Measure the gateway beside LiteLLM, and Bifrost if it is on PATH
	@[ -x $(LITELLM) ] || { echo "Installing LiteLLM into build/litellm (once)" >&2 && \
	  $(PYTHON) -m venv build/litellm && build/litellm/bin/python -m pip install --quiet 'litellm[proxy]>=1.106,<2'; } || \
	  echo "*** LiteLLM could not be installed: nothing to compare with" >&2
	@PYTHONPATH=tests $(BIN)/python -m bench.gateway --litellm $(LITELLM)

REQUESTS ?= 100000

.PHONY: soak-gateway
soak-gateway: $(VENV)/installed-dev native  ## Ask the gateway for long, and watch its memory: REQUESTS=100000
	@PYTHONPATH=tests $(BIN)/python -m bench.gateway --soak $(REQUESTS)

.PHONY: bench-sessions
bench-sessions: $(VENV)/installed-bench native  ## Measure sessions beside the naive version of them, in front of the scripted LLM
	@PYTHONPATH=tests $(BIN)/python -m bench.sessions

SESSIONS ?= 10000

.PHONY: soak-sessions
soak-sessions: $(VENV)/installed-dev native  ## Play sessions for long, and watch the server's memory: SESSIONS=10000 TURNS=20
	@PYTHONPATH=tests $(BIN)/python -m bench.sessions_soak $(SESSIONS) "$${TURNS:-20}"

POINTS   ?= 5000
ANSWERS  ?= 100000
CHECKS   ?= 1000000
RECORDED ?= 10000

.PHONY: stress-sessions
stress-sessions: $(VENV)/installed-dev native  ## Test sessions for hours: POINTS=5000 kills, ANSWERS=100000, CHECKS=1000000 for leaks, RECORDED=10000
	@PERIPETY_KILL_POINTS=$(POINTS) PERIPETY_NARRATORS=$(ANSWERS) PERIPETY_LEAK_CHECKS=$(CHECKS) \
		PERIPETY_SESSIONS=$(RECORDED) PERIPETY_GAMES=500 PERIPETY_MUTATIONS=10000 PERIPETY_EXAMPLES=2000 \
		PERIPETY_REPLICA_TROUBLES=500 PERIPETY_DISK_FAULTS=500 PERIPETY_BREAKS=5000 \
		$(BIN)/python -m pytest --timeout=0 -o log_cli=true -o log_cli_level=INFO tests/e2e/test_kills.py tests/e2e/test_rivals.py \
		tests/e2e/test_failing_disk.py tests/integration/sessions/test_broken_off.py tests/property/test_sessions_*.py \
		tests/unit/storage/test_kills.py

.PHONY: bench-policies
bench-policies: $(VENV)/installed-bench native  ## Measure suites of scenarios for policies, and decisions beside Cedar and Casbin
	@PYTHONPATH=tests $(BIN)/python -m bench.policies

.PHONY: bench-testgen
bench-testgen: $(VENV)/installed-dev native  ## Measure generated tests by the mutants that they kill: models of graded quality, three ways to ask them
	@PYTHONPATH=tests $(BIN)/python -m bench.testgen

ITEMS ?= 1000000

.PHONY: bench-batch
bench-batch: $(VENV)/installed-dev native  ## Measure batches beside validators of schemas alone, in process and over gRPC
	@PYTHONPATH=tests $(BIN)/python -m bench.batch

.PHONY: soak-batch
soak-batch: $(VENV)/installed-dev native  ## Stream specifications through one batch, and watch its memory: ITEMS=1000000
	@PYTHONPATH=tests $(BIN)/python -m bench.batch_soak $(ITEMS)

# How much is compared, and from which seed: the cases depend on the seed alone.
STEPS ?= 1000000
LOGIC ?= 100000
SEED  ?= 1

.PHONY: fuzz-diff
fuzz-diff: $(VENV)/installed-dev native  ## Compare both cores over random cases: STEPS=1000000 LOGIC=100000 SEED=1
	@PYTHONPATH=tests $(BIN)/python -m fuzz.differential --steps $(STEPS) --logic $(LOGIC) --seed $(SEED)

PAIRS ?= 1000000

.PHONY: fuzz-patterns
fuzz-patterns: $(VENV)/installed-dev native  ## Compare matching with a naive scan over random cases: PAIRS=1000000 SEED=1
	@PYTHONPATH=tests $(BIN)/python -m fuzz.patterns --pairs $(PAIRS) --seed $(SEED)

DECISIONS ?= 1000000

.PHONY: fuzz-policies
fuzz-policies: $(VENV)/installed-dev native  ## Compare the decisions of both cores over random policies: DECISIONS=1000000 SEED=1
	@PYTHONPATH=tests $(BIN)/python -m fuzz.policies --decisions $(DECISIONS) --seed $(SEED)

SPLITS ?= 1000000

.PHONY: fuzz-arrivals
fuzz-arrivals: $(VENV)/installed-dev native  ## Take tests out of answers that are cut anywhere: SPLITS=1000000 SEED=1
	@PYTHONPATH=tests $(BIN)/python -m fuzz.arrivals --splits $(SPLITS) --seed $(SEED)

OPERATIONS ?= 1000000
PROVIDER   ?= anthropic
soak-simulator: CONVERSATIONS ?= 10000
soak-prompt-cache: CONVERSATIONS ?= 100000

.PHONY: soak-simulator
soak-simulator: $(VENV)/installed-dev native  ## Keep conversations with the scripted LLM apart: OPERATIONS=1000000 CONVERSATIONS=10000 SEED=1
	@PYTHONPATH=tests $(BIN)/python -m fuzz.conversations --operations $(OPERATIONS) --conversations $(CONVERSATIONS) --seed $(SEED)

.PHONY: soak-prompt-cache
soak-prompt-cache: $(VENV)/installed-dev  ## Hold predicted cache reads and writes to a provider's books: CONVERSATIONS=100000 PROVIDER=anthropic SEED=1
	@PYTHONPATH=tests $(BIN)/python -m fuzz.prompt_cache --conversations $(CONVERSATIONS) --provider "$(PROVIDER)" --seed $(SEED)

MINUTES ?= 1

.PHONY: fuzz
fuzz: $(VENV)/installed-fuzz native  ## Fuzz both cores, guided by coverage: MINUTES=1 for each target
	@BIN=$(BIN) .ci/fuzz $(MINUTES)

.PHONY: sanitize
sanitize:  ## Test the native core under AddressSanitizer
	@.ci/sanitize

.PHONY: generate
generate: $(VENV)/installed-dev  ## Write the generated code and schemas anew
	$(BIN)/python protos/generate.py
	@$(BIN)/python protos/error_reasons.py
	@$(BIN)/python docs/generate_reference.py
	$(BIN)/python -m peripety.engine.schemas

.PHONY: native
native: $(VENV)/installed  ## Build the native core, if cargo is on PATH
	@.ci/native $(VENV)

.PHONY: clean
clean:  ## Remove everything that make made
	rm -rf $(VENV) dist build simcore/dist simcore/target simcore/crates/simcore-py/target simcore/benches/target simcore/fuzz/target .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks .import_linter_cache

# Each file below stands for one finished installation; it is older than what it was made from when that changes.
$(VENV)/created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Peripety needs Python 3.11 or newer, and '$(PYTHON)' is not. Name one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV) || { \
	  echo "Python could not create $(VENV). On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@touch $@

$(VENV)/installed: $(VENV)/created pyproject.toml simcore/pyproject.toml .ci/constraints.txt
	@echo "Installing into $(VENV) (once, about half a minute)" >&2
	@$(PIP) hatchling maturin
	@$(PIP) --editable ./simcore --editable .
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed
	@echo "Installing the tools for tests and checks (once)" >&2
	@$(PIP) --editable ./simcore --editable '.[dev]'
	@touch $@

$(VENV)/installed-fuzz: $(VENV)/installed-dev
	@echo "Installing the fuzzer of the Python core (once)" >&2
	@$(PIP) --editable ./simcore --editable '.[fuzz]'
	@touch $@

# Two of the peers call their package json_logic, so that each gets a folder of its own.
$(VENV)/installed-bench: $(VENV)/installed-dev
	@echo "Installing what the engine and the HTTP client are measured beside (once)" >&2
	@$(PIP) --editable ./simcore --editable '.[bench]' httpx-aiohttp
	@for peer in json-logic-qubit panzi-json-logic; do $(PIP) --target $(VENV)/peers/$$peer $$peer || exit 1; done
	@touch $@

$(VENV)/installed-llm: $(VENV)/installed
	@echo "Installing a language model and its server (once, about 350 MB)" >&2
	@$(PIP) --editable ./simcore --editable '.[llm]'
	@touch $@
