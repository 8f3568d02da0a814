"""Rule author: a model call that writes the rules for the tools of a batch."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.errors import Finding, Severity
from peripety.gateway.model import ResponseSchema
from peripety.policies.compiling.answers import RULES, rules_schema
from peripety.policies.compiling.artifacts import key_of
from peripety.policies.compiling.batches import Batch, halving
from peripety.policies.compiling.document import Section, document_of
from peripety.policies.compiling.material import as_text, conversation_about, material, system_text
from peripety.sim import validate_policy
from peripety.tasks import aside

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.gateway.model import ModelGateway
    from peripety.policies.compiling.artifacts import Artifacts
    from peripety.policies.model import CompileOrder

__all__ = ["RuleAuthor", "Written"]

_BEGIN = "Write the rules for the tools, following the instructions above."
_AGAIN = "The existing rules do not meet these scenarios. Write all rules again, so that they do:"
_RULES_OF_DOCUMENT = "/rules/"


@dataclass(frozen=True, slots=True)
class Written:
    """Rules that a model wrote.

    Attributes:
        section: the rules.
        model: the model, as `provider/model`.
    """

    section: Section
    model: str


class RuleAuthor:
    """Author of rules, with one response per batch.

    Args:
        gateway: the model gateway.
        order: the written policy.
        artifacts: the cache of model output.
    """

    def __init__(self, gateway: ModelGateway, order: CompileOrder, artifacts: Artifacts) -> None:
        self._gateway = gateway
        self._order = order
        self._artifacts = artifacts

    async def write(self, batch: Batch) -> tuple[Section, ...]:
        """Write the rules of a batch, or of its parts if one response cannot hold them; uses the cache.

        Raises:
            PeripetyError: as raised by `ModelGateway.stream`.
        """
        schema = rules_schema(batch.tools)
        key = key_of("rules", self._order.model, self._system(batch), _BEGIN, schema, batch.is_all)
        kept = await self._artifacts.get(key)
        if kept is not None:
            return _read(json.loads(kept), batch)
        sections = [written.section for _, written in await halving(batch, self._asked)]
        await self._artifacts.put(key, as_text(_written(sections)).encode())
        return tuple(sections)

    async def rewrite(self, batch: Batch, failed: Sequence[Mapping[str, Any]]) -> Written:
        """Write all rules of a batch again, given the scenarios that the existing ones do not meet.

        Raises:
            PeripetyError: as raised by `ModelGateway.stream`.
        """
        return await self._asked(batch, f"{_AGAIN}\n{as_text({'failed': [*failed]})}")

    def _system(self, batch: Batch) -> str:
        return system_text("rules", material(self._order, batch.tools))

    async def _asked(self, batch: Batch, question: str = _BEGIN) -> Written:
        async def accept(value: Any) -> Sequence[Finding]:
            rules = Section(batch, tuple(value["rules"])).bound().rules
            return await aside(lambda: self._findings(batch, rules), len(as_text(rules)))

        schema = ResponseSchema(RULES, rules_schema(batch.tools), accept)
        conversation = conversation_about(self._gateway, self._system(batch), self._order.model)
        completion = await conversation.send(question, schema=schema)
        section = Section(batch, tuple((completion.value or {}).get("rules", ()))).bound()
        return Written(section, f"{completion.provider}/{completion.model}")

    def _findings(self, batch: Batch, rules: Sequence[Mapping[str, Any]]) -> list[Finding]:
        """Return the errors of the rules; invariants are left out, as they may refer to other tools."""
        document = document_of(self._order, batch.tools, rules, invariants=[])
        return [
            finding
            for finding in validate_policy(document)
            if finding.severity is Severity.ERROR and finding.path.startswith(_RULES_OF_DOCUMENT)
        ]


def _written(sections: Sequence[Section]) -> list[Any]:
    """Return the stored form of sections; tools are stored as a count, in the order of the batch."""
    return [[len(section.batch.tools), section.batch.is_all, [*section.rules]] for section in sections]


def _read(written: Sequence[Any], batch: Batch) -> tuple[Section, ...]:
    sections, first = [], 0
    for count, is_all, rules in written:
        own = batch if count == len(batch.tools) else Batch(batch.tools[first : first + count], is_all)
        sections.append(Section(own, tuple(rules)))
        first += count
    return tuple(sections)
