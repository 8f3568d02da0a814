"""Profiles of a run: its rounds, its limits, and what is suggested for a model that reasons."""

from __future__ import annotations

from typing import Any

import pytest

from peripety.api.testgen.v1 import testgen_pb2 as pb
from peripety.errors import InvalidArgumentError
from peripety.gateway.models.catalog import ModelCatalog
from peripety.testgen.events import GenerationStarted
from peripety.testgen.pb.requests import config_to_proto, order_from_proto
from peripety.testgen.types import RunProfile, TestGenConfig
from support.testgen.fake_run import NumberedSubject, Question, about, always, order, ran, some

DIRECT = {"profile": RunProfile.DIRECT, "min_total_tests": 6, "target_total_tests": 9}


def about_parts(*parts: int) -> list[dict[str, Any]]:
    return [about(part, category="beta") for part in parts]


async def test_the_direct_profile_begins_with_one_large_round_and_goes_on_with_survivors() -> None:
    def tests(question: Question) -> list[dict[str, Any]]:
        return (
            about_parts(*range(6)) if question.said["round"] == 1 else about_parts(5 + question.said["round"])
        )

    author = always(tests)
    book = await ran(author, order("alpha", "beta", **DIRECT), NumberedSubject(12))
    assert [question.kind for question in author.questions] == ["tests"] * 4
    assert [question.place for question in author.questions] == [(None, 1), (None, 2), (None, 3), (None, 4)]
    first, second, *_ = author.questions
    assert (first.said["at_least"], first.said["at_most"]) == (6, 9)
    assert (second.said["at_least"], second.said["at_most"]) == (2, 3)
    assert [entry["mutant"] for entry in second.said["survivors"]] == [f"m{part}" for part in range(6, 12)]
    assert book.suite[0].test_id == "direct1_1"
    assert {test.category for test in book.suite} == {"beta"}
    assert book.stopped_by == "target_total_tests"
    assert book.stats.comprehensiveness_score is None


async def test_the_direct_profile_has_at_most_three_rounds_on_survivors() -> None:
    author = always(
        lambda question: about_parts(10 * question.said["round"], 10 * question.said["round"] + 1)
    )
    what = order("alpha", "beta", profile=RunProfile.DIRECT, min_total_tests=2)
    book = await ran(author, what, NumberedSubject(90))
    assert book.stats.global_rounds == 4
    assert book.stopped_by == "rounds_used"


@pytest.mark.parametrize("profile", [None, RunProfile.DIRECT])
@pytest.mark.parametrize("is_long", [True, False])
async def test_long_sources_are_sent_once_so_that_more_calls_fit(
    profile: RunProfile | None,
    is_long: bool,
) -> None:
    subject = NumberedSubject(12)
    sources = [{"file": "a.py", "text": "x = 1\n" * (6_000 if is_long else 6)}]
    subject.material = {"sources": sources}
    author = always(about_parts(0, 1))
    await ran(author, order("alpha", "beta", profile=profile, max_total_tokens=60_000), subject)
    systems = {question.request.system for question in author.questions}
    assert len(systems) == 1
    assert ("x = 1" in (systems.pop() or "")) is not is_long
    first, *later = author.questions
    assert first.said.get("sources") == (sources if is_long else None)
    assert later
    assert not any("sources" in question.said for question in later)


async def test_the_direct_profile_ends_when_nothing_is_left() -> None:
    author = always(about_parts(0, 1))
    what = order("alpha", "beta", profile=RunProfile.DIRECT, min_total_tests=2)
    book = await ran(author, what, NumberedSubject(2))
    assert (book.stats.total_rounds, book.stopped_by) == (1, "satisfied")


async def test_the_direct_profile_needs_no_subject() -> None:
    author = always(lambda question: some(question, 3))
    book = await ran(author, order("alpha", **DIRECT))
    assert [question.place for question in author.questions] == [(None, 1), (None, 2)]
    assert len(book.suite) == 6


async def test_a_large_round_has_room_for_all_its_tests() -> None:
    author = always(lambda question: some(question, 30))
    await ran(author, order("alpha", profile=RunProfile.DIRECT, min_total_tests=15))
    assert (author.questions[0].request.max_output_tokens or 0) >= 30 * 300


def parsed(**config: Any) -> TestGenConfig:
    request = pb.GenerateTestsRequest(task_description="d", config=pb.TestGenConfig(**config))
    return order_from_proto(request).config


def test_the_reasoning_profile_sets_limits_that_others_override() -> None:
    config = parsed(profile=pb.TEST_GEN_PROFILE_REASONING)
    assert (config.max_total_seconds, config.max_total_tokens) == (900, 200_000)
    assert parsed(profile=pb.TEST_GEN_PROFILE_REASONING, max_total_tokens=7).max_total_tokens == 7
    direct = parsed(profile=pb.TEST_GEN_PROFILE_DIRECT)
    assert (direct.max_total_seconds, direct.max_total_tokens) == (180, 50_000)
    for one in (config, direct, parsed()):
        assert (
            order_from_proto(
                pb.GenerateTestsRequest(task_description="d", config=config_to_proto(one))
            ).config
            == one
        )
    with pytest.raises(InvalidArgumentError, match=r"config\.profile"):
        parsed(profile=9)


CATALOG = ModelCatalog.load()


@pytest.mark.parametrize(
    ("model", "config", "suggested"),
    [
        ("gpt-5.2", {"max_total_tokens": 50_000}, RunProfile.REASONING),
        ("gpt-5.2", {"max_total_tokens": 300_000}, None),
        ("gpt-5.2", {"max_total_tokens": 50_000, "profile": RunProfile.DIRECT}, None),
        ("gpt-4.1", {"max_total_tokens": 50_000}, None),
    ],
)
async def test_a_profile_is_suggested_for_a_model_that_reasons(
    model: str,
    config: dict[str, Any],
    suggested: RunProfile | None,
) -> None:
    book = await ran(always(), order("alpha", **config), model=CATALOG.find("openai", model))
    (started,) = book.of(GenerationStarted)
    assert started.suggested_profile is suggested
