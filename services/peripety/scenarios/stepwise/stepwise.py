"""Outline author: a scenario from a weak model, by an outline and then section after section.

Each answer has a small schema with the names of earlier answers. The result is a blueprint. Numbers, paths
and conditions are derived by rules, and so are omitted parts.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from peripety.authoring import author, specification
from peripety.authoring.choices import Choices
from peripety.authoring.composing.composer import composed
from peripety.errors import Finding, Severity
from peripety.gateway.conversations import Conversation
from peripety.gateway.model import Options, ResponseSchema
from peripety.gateway.streams import following
from peripety.scenarios.model import Stage
from peripety.scenarios.prompts import prompt
from peripety.scenarios.stepwise.filling import fillings
from peripety.scenarios.stepwise.outline import OUTLINE, PROMPT, matter_of, outlined, question_about
from peripety.scenarios.stepwise.sections import SECTIONS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping

    from peripety.authoring.blueprint import Blueprint
    from peripety.gateway.model import ModelGateway
    from peripety.scenarios.model import GenerationOrder, Progress
    from peripety.scenarios.stepwise.sections import Section
    from peripety.scenarios.writing.asking import Answer, Asker

__all__ = ["Candidate", "Stepwise"]

# The longest answer of these schemas. A small model may not stop by itself.
_MAX_TOKENS = 2_048
# At a higher temperature small models digress; at a lower one they repeat themselves.
_TEMPERATURE = 0.5

_WORDS_ONLY = Finding(
    "WORDS_ONLY",
    "",
    "the model wrote names and sizes only; rules derived numbers and conditions",
    Severity.WARNING,
)


_ADDED = Finding(
    "FILLED_BY_RULES",
    "",
    "the model's actions and events alone do not result in a fair scenario; rules added others",
    Severity.WARNING,
)
_REPLACED = replace(
    _ADDED, message="the model's actions and events do not result in a fair scenario; rules wrote both"
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """Candidate specification from the model's answers.

    Attributes:
        write: builds a valid specification; CPU-bound.
        findings: warnings about the way of its generation.
    """

    write: Callable[[], dict[str, Any]]
    findings: tuple[Finding, ...]


class Stepwise:
    """Outline authoring of one scenario.

    Args:
        asker: sends the requests, and counts their usage.
        gateway: the model gateway.
        order: the order.
        seed: the seed of the scenario.

    Attributes:
        candidates: candidate specifications, the preferred one first; set at the end of the events.
        answer: the last usable answer of the model; None without one.
    """

    def __init__(self, asker: Asker, gateway: ModelGateway, order: GenerationOrder, seed: int) -> None:
        self._asker = asker
        options = Options(model=order.model, temperature=_TEMPERATURE)
        self._conversation = Conversation(gateway, prompt(PROMPT), options=options)
        self._description = order.description
        self._seed = seed
        self._gaps: list[Finding] = []
        self.candidates: tuple[Candidate, ...] = ()
        self.answer: Answer | None = None

    async def events(self) -> AsyncIterator[Progress]:
        """Request all parts, within the limits of the order, and set the attributes.

        Raises:
            PeripetyError: a request failed, and a smaller one would not succeed.
        """
        async with following(self._asked("an outline", self._about(), OUTLINE)) as steps:
            async for step in steps:
                yield step
        outline = self._told()
        if outline is None:
            message = (
                f"the model gave no usable answer{self._why()}; rules wrote the scenario from the description"
            )
            found = Finding("WITHOUT_MODEL", "", message, Severity.WARNING)
            self.candidates = (Candidate(partial(author, self._description, self._seed), (found,)),)
            return
        by_rules = self._composed(outline)
        blueprint = outlined(outline, self._description, by_rules)
        for section in SECTIONS:
            parts = section.parts(blueprint)
            if not parts:
                continue
            question = {"write": section.name, "of": [part.name for part in parts]}
            async with following(self._asked(section.name, question, section.schema(blueprint))) as steps:
                async for step in steps:
                    yield step
            blueprint, missing = section.read(blueprint, self._told())
            self._note(section, missing, len(parts))
        self.candidates = tuple(self._made_of(fillings(blueprint, by_rules)))

    def _about(self) -> dict[str, Any]:
        return {"write": "outline", **question_about(self._description)}

    async def _asked(
        self, what: str, question: Mapping[str, Any], schema: Mapping[str, Any]
    ) -> AsyncIterator[Progress]:
        yield self._asker.progress(Stage.AUTHORING, f"requesting {what}")
        asked = self._asker.ask(
            self._conversation,
            question,
            ResponseSchema("scenario_part", schema, advisory=True),
            max_output_tokens=_MAX_TOKENS,
        )
        async with following(asked) as steps:
            async for step in steps:
                yield step

    def _told(self) -> dict[str, Any] | None:
        """Return the last answer if it is an object."""
        answer = self._asker.answer
        if answer is None or not isinstance(answer.value, dict):
            return None
        self.answer = answer
        return answer.value

    def _note(self, section: Section, missing: int, of: int) -> None:
        if missing:
            told = f"no usable answer for {missing} of {of} {section.name}{self._why()}"
            message = f"the model gave {told}; rules wrote the rest"
            found = Finding("FILLED_BY_RULES", section.path, message, Severity.WARNING)
            self._gaps.append(found)

    def _why(self) -> str:
        failure = self._asker.failure
        return f" ({failure.message})" if failure else ""

    def _composed(self, outline: Mapping[str, Any]) -> Blueprint:
        words = matter_of(outline, self._description)
        return composed(words, Choices(repr(words.terms), self._seed).number)

    def _made_of(self, blueprints: Iterable[Blueprint]) -> Iterator[Candidate]:
        before: Blueprint | None = None
        for blueprint, how in zip(blueprints, ((), (_ADDED,), (_REPLACED,)), strict=True):
            if blueprint != before:
                marks = hashlib.sha256(repr((blueprint, self._seed)).encode("utf-8", "replace"))
                spec_id = f"stepwise_{marks.hexdigest()[:12]}"
                write = partial(specification, blueprint, self._seed, spec_id=spec_id)
                yield Candidate(write, (_WORDS_ONLY, *self._gaps, *how))
            before = blueprint
