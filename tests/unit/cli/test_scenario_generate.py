"""`peripety generate` against a fake service with scripted answers.

`peripety generate --random`.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner, Result

from peripety.api.common.v1 import common_pb2 as common
from peripety.api.common.v1 import engine_pb2 as engine
from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.api.scenario.v1 import scenario_pb2_grpc
from peripety.cli.app import app
from peripety.errors import SpecError, get_remedy
from peripety.scenario.spec_generator.generator import generate_spec
from support.servers.apps import embedding

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


Written = pb.GenerateScenarioResponse

SPEC = json.dumps({"name": "alpha", "actions": [{}]}).encode()
DOLLAR = 10**12


def used(calls: int, tokens: int, cached: int, dollars: float) -> common.ModelUsage:
    return common.ModelUsage(
        calls=calls,
        tokens=common.TokenUsage(input_tokens=tokens, cache_read_tokens=cached, output_tokens=50),
        cost=common.Money(currency_code="USD", pico_units=round(dollars * DOLLAR)),
    )


MISSING = common.Finding(
    code="MISSING_KEY",
    path="/actions/0",
    message="the key 'id' is missing",
    severity=common.SEVERITY_ERROR,
)
REPAIRED = [
    Written(draft=Written.Draft(spec=b"{}", attempt=1, usage=used(1, 4_000, 0, 0.02))),
    Written(findings=pb.Findings(findings=[MISSING], total=1)),
    Written(
        repaired=Written.Repaired(
            attempt=2,
            edits=[pb.RuleEdit(summary="added action a")],
            usage=used(1, 4_500, 3_600, 0.005),
        ),
    ),
    Written(
        numbers_adjusted=pb.NumbersAdjusted(
            edits=[pb.NumberEdit(summary="event 'a': weight 0.1 → 0.15 (+50%)")],
            before=pb.DryRunReport(lost=1, runs=64, fail_rate=1 / 64, persona=engine.PERSONA_RANDOM),
        ),
    ),
]
COMPLETED = Written.Completed(
    spec=SPEC,
    attempts=2,
    model="p/m",
    usage=used(2, 8_500, 3_600, 0.025),
    certificate=pb.Certificate(
        certificate_hash="0123456789abcdef",
        verdict=pb.CERTIFICATE_VERDICT_CERTIFIED,
        personas=[
            pb.PersonaReport(persona=engine.PERSONA_RANDOM, lost=common.Rate(value=0.312)),
            pb.PersonaReport(persona=engine.PERSONA_PLANNER, lost=common.Rate(value=0.1)),
        ],
    ),
)


class Writer(scenario_pb2_grpc.ScenarioServiceServicer):
    """Fake service that sends scripted events and records the request."""

    def __init__(self) -> None:
        self.events = [*REPAIRED, Written(completed=COMPLETED)]
        self.request = pb.GenerateScenarioRequest()

    async def GenerateScenario(self, request: Any, _context: Any) -> AsyncIterator[Written]:  # noqa: N802 - the contract's
        self.request = request
        for event in self.events:
            yield event


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> Writer:
    service = Writer()
    add = partial(scenario_pb2_grpc.add_ScenarioServiceServicer_to_server, service)
    monkeypatch.setattr("peripety.cli.scenario_generate.services_at", embedding(add))
    return service


def generate(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["generate", "--description", "x", *map(str, arguments)])


@pytest.mark.usefixtures("writer")
def test_what_each_answer_used_and_what_changed_is_told(tmp_path: Path) -> None:
    done = generate("--out", tmp_path / "a.json")
    assert done.stdout.splitlines() == [
        "  answer 1: 1 call · 4,000 in (0 cached, 0%) · 50 out · $0.020000",
        "    error MISSING_KEY /actions/0: the key 'id' is missing",
        f"      fix: {get_remedy('MISSING_KEY')}",
        "  repaired by answer 2: 1 call · 4,500 in (3,600 cached, 80%) · 50 out · $0.005000",
        "    added action a",
        "  missed its budget: 1 of 64 runs lost (1.6%; 95% interval 0.0% to 0.0%), persona random",
        "    event 'a': weight 0.1 → 0.15 (+50%)",
        "alpha: 1 actions, 0 events, 0 ways to lose",
        "  written by p/m: 2 calls · 8,500 in (3,600 cached, 42%) · 50 out · $0.025000",
        "  certified 0123456789ab: lost by random 31.2%, planner 10.0%",
    ]
    assert (tmp_path / "a.json").read_bytes() == SPEC + b"\n"


@pytest.mark.usefixtures("writer")
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_pipe_gets_the_specification_and_nothing_else(options: tuple[str, ...]) -> None:
    done = generate(*options)
    assert (done.exit_code, done.stdout_bytes) == (0, SPEC + b"\n")


def test_what_was_written_before_says_so_and_cost_nothing(writer: Writer, tmp_path: Path) -> None:
    writer.events = [Written(completed=Written.Completed(spec=SPEC, model="p/m", from_cache=True))]
    lines = generate("--out", tmp_path / "a.json").stdout.splitlines()
    assert lines[-1] == "  written by p/m, cached for the same description"


def test_without_options_the_strictest_level_and_the_usual_limits_are_asked_for(writer: Writer) -> None:
    assert generate().exit_code == 0
    asked = writer.request
    assert (asked.description, asked.level) == ("x", pb.VALIDATION_LEVEL_CERTIFICATE)
    assert (asked.max_attempts, asked.model, asked.refresh) == (4, "", False)
    assert asked.budget == common.Budget()
    assert not asked.HasField("seed")


def test_options_reach_the_service(writer: Writer) -> None:
    options = (
        "--seed 5 --level dry-run --model p/m --attempts 2 --max-tokens 900 --max-cost 0.25 --max-time 1.5"
    )
    assert generate(*options.split(), "--refresh").exit_code == 0
    asked = writer.request
    assert (asked.seed, asked.level, asked.model) == (5, pb.VALIDATION_LEVEL_DRY_RUN, "p/m")
    assert (asked.max_attempts, asked.refresh) == (2, True)
    assert (asked.budget.max_tokens, asked.budget.max_cost.pico_units) == (900, DOLLAR // 4)
    assert asked.budget.max_cost.currency_code == "USD"
    assert asked.budget.max_time.ToMilliseconds() == 1_500


@pytest.mark.parametrize(
    "options",
    [
        ("--attempts", "0"),
        ("--max-tokens", "0"),
        ("--max-cost", "0"),
        ("--max-time", "0"),
        ("--level", "all"),
        ("--attempts", "99999999999"),
        ("--max-tokens", "99999999999999999999"),
        ("--max-cost", "inf"),
        ("--max-cost", "nan"),
        ("--max-time", "1e300"),
    ],
)
def test_an_option_that_no_request_can_hold_or_that_allows_nothing_is_misuse(
    writer: Writer,
    options: tuple[str, str],
) -> None:
    assert generate(*options).exit_code == 2
    assert not writer.request.request_id


def test_a_rejection_writes_nothing_and_says_what_it_used(writer: Writer, tmp_path: Path) -> None:
    rejected = Written.Rejected(
        findings=pb.Findings(findings=[MISSING], total=1),
        attempts=1,
        usage=used(1, 9, 0, 0.5),
    )
    writer.events = [Written(rejected=rejected)]
    done = generate("--out", tmp_path / "a.json")
    assert isinstance(done.exception, SpecError)
    assert [found.code for found in done.exception.findings] == ["MISSING_KEY"]
    assert done.stdout == "  given up after 1 answer: 1 call · 9 in (0 cached, 0%) · 50 out · $0.500000\n"
    assert not (tmp_path / "a.json").exists()


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["generate", *arguments])


def test_standard_output_gets_a_line_for_each() -> None:
    assert run("--random", "3", "--seed", "5").stdout_bytes.splitlines() == [
        generate_spec(5, index) for index in range(3)
    ]


def test_a_file_gets_the_same_and_more_of_them_begin_like_fewer(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    result = run("--random", "4", "--out", str(out))
    assert (result.exit_code, result.stdout) == (0, "")
    assert out.read_bytes().startswith(run("--random", "3").stdout_bytes)


def test_a_text_and_chance_exclude_each_other() -> None:
    result = run("--random", "3", "--description", "a text")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--description" in result.stderr


def test_a_file_that_cannot_be_written_is_misuse(tmp_path: Path) -> None:
    result = run("--random", "3", "--out", str(tmp_path / "no" / "where"))
    assert result.exit_code == 2
    assert "cannot write" in result.stderr


def test_random_specifications_have_a_story_on_request() -> None:
    assert run("--random", "2", "--story", "--seed", "5").stdout_bytes.splitlines() == [
        generate_spec(5, index, with_story=True) for index in range(2)
    ]
    refused = run("--story")
    assert refused.exit_code == 2
    assert "--story requires --random" in refused.stderr
