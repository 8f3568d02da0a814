"""A scenario from a model that cannot write one: it is asked for an outline, then for section after section.

Each answer comes under a small schema made of the names before it. What comes of them is a blueprint;
numbers, paths and conditions are the engine's matter, and so is whatever an answer leaves out.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from peripety.authoring import author, specification
from peripety.authoring.choices import Choices
from peripety.authoring.composing.composer import composed
from peripety.errors import Finding, Severity
from peripety.gateway.conversations import Conversation
from peripety.gateway.model import Options, ResponseSchema
from peripety.gateway.streams import following
from peripety.scenarios.model import Draft, Stage
from peripety.scenarios.prompts import prompt
from peripety.scenarios.stepwise.filling import filled
from peripety.scenarios.stepwise.outline import OUTLINE, PROMPT, matter_of, outlined, question_about
from peripety.scenarios.stepwise.sections import SECTIONS
from peripety.scenarios.writing.judging import as_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from peripety.authoring.blueprint import Blueprint
    from peripety.gateway.model import ModelGateway
    from peripety.scenarios.model import GenerationOrder, Progress
    from peripety.scenarios.stepwise.sections import Section
    from peripety.scenarios.writing.asking import Answer, Asker

__all__ = ["Stepwise"]

# The longest answer by these schemas. A small model does not know when to stop.
_MAX_TOKENS = 2_048
# Small models wander off when they are left more freedom than this, and repeat themselves when left less.
_TEMPERATURE = 0.5

_WORDS_ONLY = Finding(
    "WORDS_ONLY",
    "",
    "the model gave words and sizes, part by part; numbers and conditions are the engine's",
    Severity.WARNING,
)


class Stepwise:
    """One scenario under way.

    Args:
        asker: puts the questions, and counts what they use.
        gateway: answers them.
        order: what the scenario is about.
        seed: its seed.

    Attributes:
        spec: the specification, always a valid one; empty before the events are over.
        findings: how it came about, as warnings.
        answer: the model's last answer of use; None when there was none.
    """

    def __init__(self, asker: Asker, gateway: ModelGateway, order: GenerationOrder, seed: int) -> None:
        self._asker = asker
        options = Options(model=order.model, temperature=_TEMPERATURE)
        self._conversation = Conversation(gateway, prompt(PROMPT), options=options)
        self._description = order.description
        self._seed = seed
        self.spec: dict[str, Any] = {}
        self.findings: tuple[Finding, ...] = ()
        self.answer: Answer | None = None

    async def events(self) -> AsyncIterator[Progress | Draft]:
        """Ask for all parts, as far as the order allows, and set the attributes.

        Yields:
            Progress, and the draft that comes of it all.

        Raises:
            PeripetyError: as `Asker.ask`.
        """
        async with following(self._asked("an outline", self._about(), OUTLINE)) as steps:
            async for step in steps:
                yield step
        outline = self._told()
        if outline is None:
            message = f"the model gave nothing of use{self._why()}; rules wrote it from the description alone"
            self.findings = (Finding("WITHOUT_MODEL", "", message, Severity.WARNING),)
            self.spec = author(self._description, self._seed)
            return
        self.findings = (_WORDS_ONLY,)
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
        self.spec = self._specified(filled(blueprint, by_rules))
        yield Draft(as_json(self.spec), self._asker.answers, self._asker.spent)

    def _about(self) -> dict[str, Any]:
        return {"write": "outline", **question_about(self._description)}

    async def _asked(
        self, what: str, question: Mapping[str, Any], schema: Mapping[str, Any]
    ) -> AsyncIterator[Progress]:
        yield self._asker.progress(Stage.AUTHORING, f"asking for {what}")
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
        """What the last question was answered with, if it is an object at all."""
        answer = self._asker.answer
        if answer is None or not isinstance(answer.value, dict):
            return None
        self.answer = answer
        return answer.value

    def _note(self, section: Section, missing: int, of: int) -> None:
        if missing:
            told = f"nothing of use about {missing} of {of} {section.name}{self._why()}"
            message = f"the model said {told}; rules wrote what was missing"
            found = Finding("FILLED_BY_RULES", section.path, message, Severity.WARNING)
            self.findings = (*self.findings, found)

    def _why(self) -> str:
        failure = self._asker.failure
        return f" ({failure.message})" if failure else ""

    def _composed(self, outline: Mapping[str, Any]) -> Blueprint:
        words = matter_of(outline, self._description)
        return composed(words, Choices(repr(words.terms), self._seed).number)

    def _specified(self, blueprint: Blueprint) -> dict[str, Any]:
        marks = hashlib.sha256(repr((blueprint, self._seed)).encode("utf-8", "replace"))
        return specification(blueprint, self._seed, spec_id=f"stepwise_{marks.hexdigest()[:12]}")
