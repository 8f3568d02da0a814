"""A scripted author that fills the closed lists of the sections at random: nothing of it is certified."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from peripety.core.concurrency import closing
from peripety.core.config import ProviderName
from peripety.scenario.generation.loop import ScenarioGenerator
from peripety.scenario.outline_authoring.outline_author import extract_outline_terms, parse_outline
from peripety.scenario.outline_authoring.section_prompts import OUTLINE_SECTIONS
from peripety.scenario.types import (
    GenerationOrder,
    SpecGenerated,
    SpecGenerationFailed,
    ValidationLevel,
)
from support.gateway.fake_gateway import FakeGateway
from support.scenario import generation
from support.scenario.batches import WORKERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.scenario.types import GenerationEvent


def fill(schema: Mapping[str, Any], random: Random, definitions: Mapping[str, Any] | None = None) -> Any:
    """A random value that fits the schema of a section."""
    known = schema.get("$defs", definitions or {})
    if "$ref" in schema:
        return fill(known[schema["$ref"].rpartition("/")[2]], random, known)
    if "enum" in schema:
        return random.choice(schema["enum"])
    match schema["type"]:
        case "object":
            return {name: fill(part, random, known) for name, part in schema["properties"].items()}
        case "array":
            count = random.randint(schema["minItems"], schema["maxItems"])
            return [fill(schema["items"], random, known) for _ in range(count)]
        case _:
            return random.random() < 0.5


async def generated(seed: int, level: ValidationLevel) -> tuple[GenerationEvent, FakeGateway]:
    """Return the last event of a generation with a good outline and random sections."""
    random = Random(seed)
    blueprint = generation.outlined()
    sections = [json.dumps(fill(section.schema(blueprint), random)) for section in OUTLINE_SECTIONS]
    gateway = FakeGateway(json.dumps(generation.OUTLINE), *sections)
    order = GenerationOrder(generation.DESCRIPTION, model="generic/x", level=level)
    events = ScenarioGenerator(gateway, ProviderName.GENERIC, WORKERS).generate(order)
    async with closing(events) as stream:
        (*_, last) = [event async for event in stream]
    return last, gateway


@pytest.mark.parametrize("seed", range(20))
async def test_random_choices_are_never_certified(seed: int) -> None:
    last, gateway = await generated(seed, ValidationLevel.CERTIFICATE)
    assert len(gateway.requests) == 4
    assert isinstance(last, SpecGenerationFailed)
    assert last.findings[0].code == "CONTRADICTORY_PARTS"
    # The best draft is by rules, with the words of the outline.
    assert "Trim" not in json.dumps(json.loads(last.document)["actions"])


async def test_below_a_certificate_rules_write_the_contradictory_parts() -> None:
    last, _ = await generated(0, ValidationLevel.STATIC)
    assert isinstance(last, SpecGenerated)
    assert [finding.code for finding in last.findings] == ["WORDS_ONLY", "CONTRADICTORY_PARTS"]
    assert not [finding for finding in last.findings if finding.severity.value == "error"]


def test_people_of_an_outline_are_neither_quantities_nor_secrets() -> None:
    """Not even people that the description does not name."""
    said = {**generation.OUTLINE, "people": ["Gamma"], "resources": ["gamma", "fuel"], "secrets": ["Gamma"]}
    terms = extract_outline_terms(said, generation.DESCRIPTION)
    assert "gamma" not in {term.text.casefold() for term in terms.terms}
    assert "fuel" in {term.text.casefold() for term in terms.terms}
    blueprint = parse_outline(said, generation.DESCRIPTION, generation.by_rules())
    assert "gamma" not in {one.name.casefold() for one in blueprint.quantities}
