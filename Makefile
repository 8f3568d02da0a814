# Requires Python 3.11 or newer and make. With cargo on PATH, the native core is built too.
# `make help` lists the targets.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --constraint .ci/constraints.txt --no-build-isolation

# ABOUT and TURNS reach the command through the environment, unchanged: `value` prevents expansion by make. They are
# removed from MAKEFLAGS, because a long text would take its space twice.
# Without ABOUT, an example is played. ABOUT="" is the empty text.
ABOUT_ORIGIN := $(origin ABOUT)
override ABOUT := $(value ABOUT)
override TURNS := $(value TURNS)
export ABOUT TURNS
MAKEOVERRIDES :=

DESCRIPTION = if [ "$(ABOUT_ORIGIN)" = undefined ]; then cat examples/description.txt; else printf '%s' "$$ABOUT"; fi

# Tests start hundreds of processes. Without bytecode files, each would compile every module again.
unexport PYTHONDONTWRITEBYTECODE

ROUNDS ?= 3

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help:  ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-27s %s\n", $$1, $$2 }' Makefile

# The game comes first, if need be on the Python core: the native core has the same results, and takes a minute to build.
.PHONY: play
play: $(VENV)/installed  ## Turn a description into a scenario and play it to its end: ABOUT="any text" TURNS=5
	@{ $(DESCRIPTION); } | $(BIN)/peripety play --auto $${TURNS:+--turns "$$TURNS"} --description -
	@.ci/native $(VENV)

.PHONY: play-llm
play-llm: $(VENV)/installed-llm native  ## Play with a language model on this machine (about 350 MB), or with Ollama
	@{ $(DESCRIPTION); } | BIN=$(BIN) examples/local-model

.PHONY: testgen-llm
testgen-llm: $(VENV)/installed-llm native  ## Generate and measure tests with that model: ROUNDS=3
	@BIN=$(BIN) examples/local-model testgen generate --file examples/testgen/scenario.md \
	  --scenario examples/scenario.json --no-baseline --max-rounds $(ROUNDS) --max-time 900

.PHONY: serve
serve: $(VENV)/installed native  ## Serve all services in one process
	@$(BIN)/peripety serve all

# One more process than cores: many tests wait for a disk or for another process.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(os.cpu_count() + 1)')
PYTEST  := $(BIN)/python -m pytest --ignore=tests/bench --numprocesses $(WORKERS) --dist worksteal

.PHONY: test
test: $(VENV)/installed-dev native test-core  ## Run the fast tests, with the same result every time: WORKERS=3
	@$(PYTEST) -m "not slow"

PROFILE ?= all

.PHONY: test-rest
test-rest: $(VENV)/installed-dev native  ## Run the slow tests, and the property tests with fresh random seeds: PROFILE=short for fewer
	@$(PYTEST) -m "slow or property" --hypothesis-profile=$(PROFILE)

.PHONY: test-all
test-all: $(VENV)/installed-dev native test-core  ## Run every test, with fresh random seeds
	@PERIPETY_PICTURES=1 $(PYTEST) --hypothesis-profile=all

ENGINE_TESTS := tests/unit/engine

.PHONY: test-engine
test-engine: build/engine/installed  ## Run the tests of the engine with only peripety-engine installed
	@PYTHONPATH=tests build/engine/bin/python -m pytest --confcutdir=$(ENGINE_TESTS) -p support.engine_only $(ENGINE_TESTS)

.PHONY: test-llm
test-llm: $(VENV)/installed-dev $(VENV)/installed-llm native  ## Test the gateway with a real language model on this machine (about 350 MB)
	@PERIPETY_REQUIRE_LLM=1 $(BIN)/python -m pytest tests/integration/gateway/test_local_server.py

.PHONY: test-core
test-core:
	@.ci/cargo test --quiet --manifest-path simcore/Cargo.toml

.PHONY: conformance
conformance: $(VENV)/installed-dev native  ## Write docs/reference/llmsim-conformance.md from a run of the official SDKs
	@PYTHONPATH=tests $(BIN)/python -m conformance.simulator.publish

.PHONY: test-clients
test-clients: $(VENV)/installed-dev native  ## Test the client libraries against a real server (a missing toolchain is skipped)
	@PERIPETY_CUTS=200 PERIPETY_ALL_CLIENTS=1 $(PYTEST) -rs tests/e2e/clients tests/unit/client tests/conformance/test_client_transcripts.py

.PHONY: test-engines
test-engines: $(VENV)/installed-dev native  ## Test the clients of game engines against a real server (a missing engine is skipped)
	@PERIPETY_ENGINES=1 $(PYTEST) -rs tests/e2e/engines

.PHONY: wasm
wasm:  ## Build the engine for WebAssembly into clients/typescript (needs Rust for wasm32; the result is committed)
	@.ci/wasm

PLAYED ?= 1000

.PHONY: test-wasm
test-wasm: $(VENV)/installed-dev native  ## Play sessions in WebAssembly and verify them on the server, honest and forged: PLAYED=1000
	@PERIPETY_LOCAL_SESSIONS=$(PLAYED) $(BIN)/python -m pytest -o log_cli=true -o log_cli_level=INFO tests/e2e/clients/test_wasm.py

.PHONY: certificates
certificates: $(VENV)/installed-dev native  ## Write the worked example of docs/reference/certificate-format.md and the golden certificate
	@PYTHONPATH=tests $(BIN)/python -m conformance.certificates

.PHONY: transcripts
transcripts: $(VENV)/installed-dev native  ## Record the golden sessions in tests/data/transcripts, which every client verifies
	@PYTHONPATH=tests $(BIN)/python -m conformance.transcripts

TRANSCRIPTS ?= 1000

.PHONY: test-transcripts
test-transcripts: $(VENV)/installed-dev native  ## Record random sessions, and let every client verify them and false variants: TRANSCRIPTS=1000 SEED=1
	@PYTHONPATH=tests $(BIN)/python -m conformance.random_transcripts $(TRANSCRIPTS) $(SEED)
	@PERIPETY_TRANSCRIPTS=$(CURDIR)/build/transcripts .ci/transcripts

.PHONY: worked-example
worked-example: $(VENV)/installed-dev native  ## Write what is printed and drawn in the worked example of docs/tutorials/first-scenario.md
	@PYTHONPATH=tests $(BIN)/python -m conformance.worked_example

.PHONY: check
check: check-python check-text check-structure check-contract check-generated check-imports check-rust check-page  ## Run every static check

.PHONY: check-python
check-python: $(VENV)/installed-dev
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy services simcore/python clients/python tests protos docs
	$(BIN)/python -m pytest --quiet tests/unit/test_no_nouns.py

.PHONY: check-text
check-text: $(VENV)/installed-dev
	$(BIN)/typos
	$(BIN)/python .ci/names

.PHONY: check-structure
check-structure: $(VENV)/installed-dev
	$(BIN)/python .ci/structure --check

.PHONY: check-contract
check-contract: $(VENV)/installed-dev
	cd protos && ../$(BIN)/buf lint
	cd protos && ../$(BIN)/buf format --diff --exit-code

.PHONY: check-generated
check-generated: $(VENV)/installed-dev
	$(BIN)/python protos/generate.py --check
	$(BIN)/python protos/error_reasons.py --check
	$(BIN)/python protos/service_config.py --check
	@.ci/typescript --check
	@.ci/go --check
	@.ci/rust-client --check
	@.ci/wasm --check
	$(BIN)/python docs/generate_reference.py --check
	$(BIN)/python -m peripety.engine.schemas --check

.PHONY: check-imports
check-imports: $(VENV)/installed-dev
	$(BIN)/lint-imports --no-logo

.PHONY: check-page
check-page:
	@.ci/page --check

.PHONY: check-rust
check-rust:
	@.ci/cargo fmt --check --manifest-path simcore/Cargo.toml
	@.ci/cargo fmt --check --manifest-path simcore/crates/simcore-py/Cargo.toml
	@.ci/cargo fmt --check --manifest-path simcore/crates/simcore-wasm/Cargo.toml
	@.ci/cargo fmt --check --manifest-path simcore/benches/Cargo.toml
	@.ci/cargo fmt --check --manifest-path simcore/fuzz/Cargo.toml
	@.ci/cargo clippy --quiet --all-targets --manifest-path simcore/Cargo.toml -- --deny warnings
	@.ci/cargo clippy --quiet --all-targets --manifest-path simcore/crates/simcore-py/Cargo.toml -- --deny warnings
	@.ci/cargo clippy --quiet --all-targets --manifest-path simcore/crates/simcore-wasm/Cargo.toml -- --deny warnings
	@.ci/cargo clippy --quiet --all-targets --manifest-path simcore/benches/Cargo.toml -- --deny warnings

.PHONY: bench
bench: $(VENV)/installed-bench native  ## Run the benchmarks and print their figures
	@rm -rf build/bench
	@PYTHONPATH=tests $(BIN)/python -m bench.reference simcore/benches/target/specs
	@simcore/benches/run build/bench
	@$(BIN)/python -m pytest tests/bench --capture=no --benchmark-timer=time.process_time
	@PYTHONPATH=tests $(BIN)/python -m bench.table

.PHONY: bench-first-words
bench-first-words: $(VENV)/installed-dev  ## Measure the time from a clean clone to the first words of a story
	@PYTHONPATH=tests $(BIN)/python -m bench.first_words

AIMOCK := build/aimock/node_modules/@copilotkit/aimock

.PHONY: bench-simulator
bench-simulator: $(VENV)/installed-dev native  ## Compare the scripted LLM with aimock, if npm is on PATH
	@[ -d $(AIMOCK) ] || { command -v npm >/dev/null && \
	  npm install --silent --no-audit --no-fund --prefix build/aimock '@copilotkit/aimock@^1.43'; } || \
	  echo "*** aimock could not be installed; no comparison (it needs Node.js and npm)" >&2
	@PYTHONPATH=tests $(BIN)/python -m bench.simulator $(AIMOCK)

LIGHTHOUSE := build/lighthouse/node_modules/lighthouse

.PHONY: bench-page
bench-page: $(VENV)/installed-dev native  ## Measure the first words on screen, and the Lighthouse scores of the page, if npm is on PATH
	@[ -d $(LIGHTHOUSE) ] || { command -v npm >/dev/null && \
	  npm install --silent --no-audit --no-fund --prefix build/lighthouse 'lighthouse@^13.5'; } || \
	  echo "*** Lighthouse could not be installed; no scores (it needs Node.js and npm)" >&2
	@PYTHONPATH=tests $(BIN)/python -m bench.page $(LIGHTHOUSE)

.PHONY: pictures
pictures: $(VENV)/installed-dev native  ## Take pictures of every view of the page, in four sizes and two themes, and those of the tutorial
	@PERIPETY_PICTURES=1 $(BIN)/python -m pytest --quiet --timeout=900 tests/integration/page/test_views.py tests/integration/page/test_approvals.py
	@cp build/pictures/play-desktop-light.png docs/tutorials/page/play.png
	@cp build/pictures/ending-phone-light.png docs/tutorials/page/ending.png

.PHONY: bench-balance
bench-balance: $(VENV)/installed-dev native  ## Balance a hundred random specifications and count the successes
	@PYTHONPATH=tests $(BIN)/python -m bench.balance

DESCRIPTIONS ?=

.PHONY: bench-generation
bench-generation: $(VENV)/installed-dev $(VENV)/installed-llm native  ## Generate scenarios with local and scripted models: DESCRIPTIONS=file, one per line
	@PYTHONPATH=tests $(BIN)/python -m bench.generation $(DESCRIPTIONS)

.PHONY: bench-prompt-cache
bench-prompt-cache: $(VENV)/installed-dev  ## Compare the cost of prompts by the position of cache markers
	@PYTHONPATH=tests $(BIN)/python -m bench.prompt_cache

.PHONY: bench-narrator-prompt
bench-narrator-prompt: $(VENV)/installed-dev native  ## Measure the cost of the narrator's prompts, and what they remember
	@PYTHONPATH=tests $(BIN)/python -m bench.narrator_prompt

.PHONY: bench-narrator
bench-narrator: $(VENV)/installed-dev native  ## Grade scripted narrators, and count the misdeeds that are caught
	@PYTHONPATH=tests $(BIN)/python -m bench.narrator

.PHONY: claim-weights
claim-weights: $(VENV)/installed-dev native  ## Train the weights of the claims of prose again
	@PYTHONPATH=tests $(BIN)/python -m bench.claim_weights

.PHONY: bench-http-clients
bench-http-clients: $(VENV)/installed-bench  ## Compare HTTP clients for calls to providers
	@PYTHONPATH=tests $(BIN)/python -m bench.http_clients

LITELLM := build/litellm/bin/litellm

.PHONY: bench-gateway
bench-gateway: $(VENV)/installed-dev native  ## Compare the gateway with LiteLLM, and with Bifrost if it is on PATH
	@[ -x $(LITELLM) ] || { echo "Installing LiteLLM into build/litellm (once)" >&2 && \
	  $(PYTHON) -m venv build/litellm && build/litellm/bin/python -m pip install --quiet 'litellm[proxy]>=1.106,<2'; } || \
	  echo "*** LiteLLM could not be installed; no comparison" >&2
	@PYTHONPATH=tests $(BIN)/python -m bench.gateway --litellm $(LITELLM)

REQUESTS ?= 100000

.PHONY: soak-gateway
soak-gateway: $(VENV)/installed-dev native  ## Send many requests to the gateway and check its memory: REQUESTS=100000
	@PYTHONPATH=tests $(BIN)/python -m bench.gateway --soak $(REQUESTS)

.PHONY: bench-sessions
bench-sessions: $(VENV)/installed-bench native  ## Compare sessions with a naive implementation, with the scripted LLM
	@PYTHONPATH=tests $(BIN)/python -m bench.sessions

SESSIONS ?= 10000

.PHONY: soak-sessions
soak-sessions: $(VENV)/installed-dev native  ## Play many sessions and check the memory of the server: SESSIONS=10000 TURNS=20
	@PYTHONPATH=tests $(BIN)/python -m bench.sessions_soak $(SESSIONS) "$${TURNS:-20}"

POINTS   ?= 5000
ANSWERS  ?= 100000
CHECKS   ?= 1000000
RECORDED ?= 10000

.PHONY: stress-sessions
stress-sessions: $(VENV)/installed-dev native  ## Test sessions for hours: POINTS=5000 ANSWERS=100000 CHECKS=1000000 RECORDED=10000
	@PERIPETY_KILL_POINTS=$(POINTS) PERIPETY_NARRATORS=$(ANSWERS) PERIPETY_LEAK_CHECKS=$(CHECKS) \
		PERIPETY_SESSIONS=$(RECORDED) PERIPETY_GAMES=500 PERIPETY_MUTATIONS=10000 PERIPETY_EXAMPLES=2000 \
		PERIPETY_REPLICA_TROUBLES=500 PERIPETY_DISK_FAULTS=500 PERIPETY_BREAKS=5000 \
		$(BIN)/python -m pytest --hypothesis-profile=all --timeout=0 -o log_cli=true -o log_cli_level=INFO tests/e2e/test_kills.py tests/e2e/test_rivals.py \
		tests/e2e/test_failing_disk.py tests/integration/session/test_broken_off.py tests/property/test_sessions_*.py \
		tests/unit/core/storage/test_kills.py

KILLS ?= 100

.PHONY: stress-testgen
stress-testgen: $(VENV)/installed-dev native  ## Kill a server and the programs that it tests at random moments: KILLS=100
	@PERIPETY_TESTGEN_KILLS=$(KILLS) $(BIN)/python -m pytest -m "" -o log_cli=true -o log_cli_level=INFO \
		tests/e2e/test_testgen.py -k kill

.PHONY: bench-policies
bench-policies: $(VENV)/installed-bench native  ## Measure policy suites, and compare decisions with Cedar and Casbin
	@PYTHONPATH=tests $(BIN)/python -m bench.policies

.PHONY: bench-policy-reader
bench-policy-reader: $(VENV)/installed-dev native  ## Measure the policy reader without a model; TAU2_RETAIL=FOLDER adds a policy
	@PYTHONPATH=tests $(BIN)/python -m bench.policy_reader

.PHONY: bench-agentdojo
bench-agentdojo: $(VENV)/installed-dev native  ## Measure policies in prose with the tools, tasks and attacks of AgentDojo (from PyPI)
	@test -x build/agentdojo/bin/python || $(BIN)/python -m venv build/agentdojo
	@build/agentdojo/bin/python -c "import agentdojo" 2>/dev/null || build/agentdojo/bin/pip install --quiet agentdojo
	@build/agentdojo/bin/python tests/bench/agentdojo_calls.py > build/agentdojo/calls.json
	@PYTHONPATH=tests $(BIN)/python -m bench.agentdojo_policies build/agentdojo/calls.json

.PHONY: fuzz-policy-reader
fuzz-policy-reader: $(VENV)/installed-dev native  ## Read COUNT generated sentences of policies without a model, and compare their meaning
	@PYTHONPATH=tests COUNT=$(or $(COUNT),100000) $(BIN)/python -m bench.policy_paraphrases
CALLS ?= 500

.PHONY: bench-policy-enforcement
bench-policy-enforcement: $(VENV)/installed-dev native  ## Measure the proxy beside its server, and decisions over gRPC: CALLS=500
	@PYTHONPATH=tests $(BIN)/python -m bench.policy_enforcement $(CALLS)

.PHONY: bench-testgen
bench-testgen: $(VENV)/installed-dev native  ## Measure the mutation score of generated tests, by model quality and prompt
	@PYTHONPATH=tests $(BIN)/python -m bench.testgen

.PHONY: bench-testgen-programs
bench-testgen-programs: $(VENV)/installed-dev native  ## Find planted bugs in packages from PyPI and npm, beside Pynguin: COUNT=10 SECONDS=36
	@PYTHONPATH=tests $(BIN)/python -m bench.planted_bugs --count $(or $(COUNT),10) --seconds $(or $(SECONDS),36)

ITEMS ?= 1000000

.PHONY: bench-clients
bench-clients: $(VENV)/installed-dev native  ## Compare the client libraries: turns, events and validated specifications a second
	@PYTHONPATH=tests $(BIN)/python -m bench.client_libraries

.PHONY: bench-batch
bench-batch: $(VENV)/installed-dev native  ## Compare batches with plain schema validators, in process and over gRPC
	@PYTHONPATH=tests $(BIN)/python -m bench.batch

.PHONY: soak-batch
soak-batch: $(VENV)/installed-dev native  ## Stream specifications through one batch and check its memory: ITEMS=1000000
	@PYTHONPATH=tests $(BIN)/python -m bench.batch_soak $(ITEMS)

# Number of cases and their seed. The cases depend on the seed alone.
STEPS ?= 1000000
LOGIC ?= 100000
SEED  ?= 1

.PHONY: fuzz-diff
fuzz-diff: $(VENV)/installed-dev native  ## Compare both cores over random cases: STEPS=1000000 LOGIC=100000 SEED=1
	@PYTHONPATH=tests $(BIN)/python -m fuzz.differential --steps $(STEPS) --logic $(LOGIC) --seed $(SEED)

PAIRS ?= 1000000

.PHONY: fuzz-patterns
fuzz-patterns: $(VENV)/installed-dev native  ## Compare pattern matching with a naive scan: PAIRS=1000000 SEED=1
	@PYTHONPATH=tests $(BIN)/python -m fuzz.patterns --pairs $(PAIRS) --seed $(SEED)

DECISIONS ?= 1000000

.PHONY: fuzz-policies
fuzz-policies: $(VENV)/installed-dev native  ## Compare the decisions of both cores over random policies: DECISIONS=1000000 SEED=1
	@PYTHONPATH=tests $(BIN)/python -m fuzz.policies --decisions $(DECISIONS) --seed $(SEED)

SPLITS ?= 1000000

.PHONY: fuzz-arrivals
fuzz-arrivals: $(VENV)/installed-dev native  ## Parse tests from answers split at random places: SPLITS=1000000 SEED=1
	@PYTHONPATH=tests $(BIN)/python -m fuzz.arrivals --splits $(SPLITS) --seed $(SEED)

OPERATIONS ?= 1000000
PROVIDER   ?= anthropic
soak-simulator: CONVERSATIONS ?= 10000
soak-prompt-cache: CONVERSATIONS ?= 100000

.PHONY: soak-simulator
soak-simulator: $(VENV)/installed-dev native  ## Check the isolation of conversations in the scripted LLM: OPERATIONS=1000000 CONVERSATIONS=10000 SEED=1
	@PYTHONPATH=tests $(BIN)/python -m fuzz.conversations --operations $(OPERATIONS) --conversations $(CONVERSATIONS) --seed $(SEED)

.PHONY: soak-prompt-cache
soak-prompt-cache: $(VENV)/installed-dev  ## Compare predicted cache use with provider rules: CONVERSATIONS=100000 PROVIDER=anthropic SEED=1
	@PYTHONPATH=tests $(BIN)/python -m fuzz.prompt_cache --conversations $(CONVERSATIONS) --provider "$(PROVIDER)" --seed $(SEED)

MINUTES ?= 1

.PHONY: fuzz
fuzz: $(VENV)/installed-fuzz native  ## Run the coverage-guided fuzzers: MINUTES=1 for each target
	@BIN=$(BIN) .ci/fuzz $(MINUTES)

.PHONY: sanitize
sanitize:  ## Test the native core under AddressSanitizer
	@.ci/sanitize

.PHONY: generate
generate: $(VENV)/installed-dev  ## Regenerate the generated code and schemas
	$(BIN)/python protos/generate.py
	@$(BIN)/python protos/error_reasons.py
	@$(BIN)/python protos/service_config.py
	@.ci/typescript
	@.ci/go
	@.ci/rust-client
	@$(BIN)/python docs/generate_reference.py
	$(BIN)/python -m peripety.engine.schemas

.PHONY: page
page:  ## Build the page in clients/web into the package (needs Node.js and npm)
	@.ci/page

.PHONY: native
native: $(VENV)/installed  ## Build the native core, if cargo is on PATH
	@.ci/native $(VENV)

.PHONY: clean
clean:  ## Remove all build products
	rm -rf $(VENV) dist build simcore/dist simcore/target simcore/crates/simcore-py/target simcore/crates/simcore-wasm/target simcore/benches/target simcore/fuzz/target .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks .import_linter_cache

# Each file below marks one finished installation. It is redone if a prerequisite is newer.
$(VENV)/created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Peripety needs Python 3.11 or newer, and '$(PYTHON)' is not. Name one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV) || { \
	  echo "Python could not create $(VENV). On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@touch $@

$(VENV)/installed: $(VENV)/created pyproject.toml simcore/pyproject.toml clients/python/pyproject.toml .ci/constraints.txt
	@.ci/install $(VENV)
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed
	@echo "Installing the tools for tests and checks (once)" >&2
	@$(PIP) --editable ./simcore --editable ./clients/python --editable '.[dev]'
	@touch $@

build/engine/installed: simcore/pyproject.toml .ci/constraints.txt
	@echo "Installing peripety-engine alone into build/engine (once)" >&2
	@$(PYTHON) -m venv --clear build/engine
	@build/engine/bin/python -m pip install --quiet --constraint .ci/constraints.txt hatchling
	@build/engine/bin/python -m pip install --quiet --constraint .ci/constraints.txt --no-build-isolation \
	  --editable ./simcore hypothesis jsonschema pytest pytest-asyncio pytest-timeout
	@touch $@

$(VENV)/installed-fuzz: $(VENV)/installed-dev
	@echo "Installing the fuzzer of the Python core (once)" >&2
	@$(PIP) --editable ./simcore --editable ./clients/python --editable '.[fuzz]'
	@touch $@

# Two of the compared packages share the name json_logic, so each is installed in its own folder.
$(VENV)/installed-bench: $(VENV)/installed-dev
	@echo "Installing the packages for comparison (once)" >&2
	@$(PIP) --editable ./simcore --editable ./clients/python --editable '.[bench]' httpx-aiohttp
	@for peer in json-logic-qubit panzi-json-logic; do $(PIP) --target $(VENV)/peers/$$peer $$peer || exit 1; done
	@touch $@

$(VENV)/installed-llm: $(VENV)/installed
	@echo "Installing a language model and its server (once, about 350 MB)" >&2
	@$(PIP) --editable ./simcore --editable ./clients/python --editable '.[llm]'
	@touch $@
