"""Rule author: a model call that writes the rules for the tools of a batch, and the document in progress.

The document has fixed parts, and the ordered rules of each batch.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.core.concurrency import run_in_thread_if_large
from peripety.engine import validate_policy
from peripety.errors import Finding, Severity
from peripety.policy.authoring.prompts import (
    RULES_TASK,
    TaskConversation,
    answer_schema,
    authoring_system_text,
    load_prompt,
    prompt_material,
    to_compact_json,
    tool_to_document,
)
from peripety.policy.authoring.run_context import ToolBatch, digest_key, request_in_halves
from peripety.policy.authoring.sentence_report import UnexpressedPart, normalize_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from peripety.engine.policies.types import ToolRequest
    from peripety.gateway.types.response import ModelGateway
    from peripety.policy.authoring.run_context import ArtifactCache
    from peripety.policy.types import AnnotatedTool, CompileOrder


_MAX_NAME_LENGTH = 200
_MAX_ID_LENGTH = 64
_HASH_CHARACTERS = 12


@dataclass(frozen=True, slots=True)
class RuleSection:
    """The rules for the tools of one batch.

    Attributes:
        batch: the tools; the rules apply to no others.
        rules: the rules, in order.
        unexpressed: the parts of sentences that no rule expresses. Their rules stay as they are.
    """

    batch: ToolBatch
    rules: tuple[Mapping[str, Any], ...]
    unexpressed: tuple[UnexpressedPart, ...] = ()

    def restrict_to_batch(self) -> RuleSection:
        """Return the section with rules that are restricted to the tools of the batch."""
        batch = self.batch
        own = {} if batch.is_complete else {"tools": [tool.tool_name for tool in batch.tools]}
        rules = []
        for rule in self.rules:
            when = {**own, **rule["when"]}
            rules.append({**rule, "when": {**when, "servers": batch.servers_of(when.get("tools"))}})
        return replace(self, rules=tuple(rules))


class Rulebook:
    """The rules of all batches.

    Args:
        order: the order with the fixed parts.
        sections: the rules, in the order of the document. No request matches rules of two sections.

    Attributes:
        sections: the rules, with ids that are unique in the document.
    """

    def __init__(self, order: CompileOrder, sections: Iterable[RuleSection]) -> None:
        self._order = order
        taken: set[str] = set()
        self.sections = tuple([_with_unique_ids(section, taken) for section in sections])
        self._places = {
            (tool.server_name, tool.tool_name): place
            for place, section in enumerate(self.sections)
            for tool in section.batch.tools
        }

    def compile_policy(self) -> engine.Policy:
        """Compile the document.

        Raises:
            SpecError: the document is invalid.
        """
        rules = [rule for section in self.sections for rule in section.rules]
        return engine.compile_policy(make_document(self._order, self._order.tools, rules))

    @property
    def unexpressed(self) -> tuple[UnexpressedPart, ...]:
        """The parts of sentences that no rule expresses."""
        return tuple(part for section in self.sections for part in section.unexpressed)

    def section_index(self, request: ToolRequest) -> int:
        """Return the index of the section whose rules apply to a request; 0 for unknown tools."""
        return self._places.get((request.server_name, request.tool_name), 0)

    def first_rule_index(self, place: int) -> int:
        """Return the index in the document of the first rule of a section."""
        return sum(len(section.rules) for section in self.sections[:place])

    def with_rules(self, place: int, rules: Sequence[Mapping[str, Any]]) -> Rulebook:
        """Return a copy with other rules in one section."""
        before, own, behind = self.sections[:place], self.sections[place], self.sections[place + 1 :]
        other = replace(own, rules=tuple(rules)).restrict_to_batch()
        taken = {rule["id"] for section in (*before, *behind) for rule in section.rules}
        return Rulebook(self._order, (*before, _with_unique_ids(other, taken), *behind))


def make_document(
    order: CompileOrder,
    tools: Sequence[AnnotatedTool],
    rules: Sequence[Mapping[str, Any]],
    **parts: Any,
) -> bytes:
    """Return a policy document in canonical form.

    Args:
        order: the order with the fixed parts: invariants, lists and context.
        tools: the tools of the document.
        rules: its rules, in order.
        parts: replacements of other members.

    Raises:
        InvalidArgumentError: a part is not JSON within the engine's limits.
    """
    digest = sha256(order.constitution.encode("utf-8", "replace")).hexdigest()
    return engine.canonicalize(
        {
            "policy_version": "1.0",
            "id": f"policy_{digest[:_HASH_CHARACTERS]}",
            "name": _policy_name(order.constitution),
            "tools": [tool_to_document(tool) for tool in tools],
            "lists": dict(order.lists),
            **({"context": dict(order.context)} if order.context else {}),
            "invariants": [*order.invariants],
            "rules": [*rules],
            **parts,
        },
    )


def _policy_name(constitution: str) -> str:
    """Return the first line with text, without heading marks."""
    lines = (line.strip("# \t\r") for line in constitution.splitlines())
    return next(filter(None, lines), "policy")[:_MAX_NAME_LENGTH]


def _with_unique_ids(section: RuleSection, used_ids: set[str]) -> RuleSection:
    """Return a section with a number appended to each used id, and mark its ids as used."""
    rules = []
    renamed: dict[str, str] = {}
    for rule in section.rules:
        name, number = rule["id"], 2
        while name in used_ids:
            ending = f"-{number}"
            name, number = rule["id"][: _MAX_ID_LENGTH - len(ending)] + ending, number + 1
        used_ids.add(name)
        renamed[rule["id"]] = name
        rules.append(rule if name == rule["id"] else {**rule, "id": name})
    unexpressed = tuple(
        replace(part, rule_ids=tuple(renamed.get(one, one) for one in part.rule_ids))
        for part in section.unexpressed
    )
    return replace(section, rules=tuple(rules), unexpressed=unexpressed)


_RULES_MESSAGE = "Write the rules."
_REWRITE_MESSAGE = "The existing rules do not meet these scenarios. Write all rules again, so that they do:"
_RULES_PATH_PREFIX = "/rules/"


@dataclass(frozen=True, slots=True)
class WrittenRules:
    """Rules that a model wrote.

    Attributes:
        section: the rules.
        model: the model, as `provider/model`.
    """

    section: RuleSection
    model: str


class RuleAuthor:
    """Author of rules, with one response per batch.

    Args:
        gateway: the model gateway.
        order: the written policy.
        artifacts: the cache of model output.
    """

    def __init__(self, gateway: ModelGateway, order: CompileOrder, artifacts: ArtifactCache) -> None:
        self._gateway = gateway
        self._order = order
        self._artifacts = artifacts

    async def write(self, batch: ToolBatch) -> tuple[RuleSection, ...]:
        """Write the rules of a batch, or of its parts if one response cannot hold them; uses the cache.

        Raises:
            PeripetyError: as raised by `ModelGateway.stream`.
        """
        key = digest_key(
            RULES_TASK,
            self._order.model,
            self._system_text(batch),
            load_prompt(RULES_TASK),
            _RULES_MESSAGE,
            answer_schema(batch.tools),
            batch.is_complete,
        )
        kept = await self._artifacts.get(key)
        if kept is not None:
            return _sections_from_json(json.loads(kept), batch)
        sections = [written.section for _, written in await request_in_halves(batch, self._request_rules)]
        await self._artifacts.put(key, to_compact_json(_sections_to_json(sections)).encode())
        return tuple(sections)

    async def rewrite(self, batch: ToolBatch, failed: Sequence[Mapping[str, Any]]) -> WrittenRules:
        """Write all rules of a batch again, given the scenarios that the existing ones do not meet.

        Raises:
            PeripetyError: as raised by `ModelGateway.stream`.
        """
        return await self._request_rules(
            batch,
            f"{_REWRITE_MESSAGE}\n{to_compact_json({'failed': [*failed]})}",
        )

    def _system_text(self, batch: ToolBatch) -> str:
        return authoring_system_text(prompt_material(self._order, batch.tools))

    async def _request_rules(self, batch: ToolBatch, question: str = _RULES_MESSAGE) -> WrittenRules:
        async def accept(value: Any) -> Sequence[Finding]:
            section = _parse_section(batch, value).restrict_to_batch()
            return await run_in_thread_if_large(
                lambda: [*self._rule_errors(batch, section.rules), *_unexpressed_errors(section)],
                len(to_compact_json(section.rules)),
            )

        system, model = self._system_text(batch), self._order.model
        conversation = TaskConversation(self._gateway, RULES_TASK, system, batch.tools, model, accept)
        completion = await conversation.send(question)
        section = _parse_section(batch, completion.value or {}).restrict_to_batch()
        return WrittenRules(section, f"{completion.provider}/{completion.model}")

    def _rule_errors(self, batch: ToolBatch, rules: Sequence[Mapping[str, Any]]) -> list[Finding]:
        """Return the errors of the rules; invariants are left out, as they may refer to other tools."""
        document = make_document(self._order, batch.tools, rules, invariants=[])
        return [
            finding
            for finding in validate_policy(document)
            if finding.severity is Severity.ERROR and finding.path.startswith(_RULES_PATH_PREFIX)
        ]


def _parse_section(batch: ToolBatch, answer: Mapping[str, Any]) -> RuleSection:
    unexpressed = tuple(
        UnexpressedPart(one["sentence"], one["part"], tuple(one["rules"]))
        for one in answer.get("unexpressed", ())
    )
    return RuleSection(batch, tuple(answer.get("rules", ())), unexpressed)


def _unexpressed_errors(section: RuleSection) -> Iterator[Finding]:
    """Yield the rules that allow calls for a sentence with a part that no rule expresses."""
    named = {rule_id for part in section.unexpressed for rule_id in part.rule_ids}
    sentences = {normalize_words(part.sentence) for part in section.unexpressed}
    for index, rule in enumerate(section.rules):
        if rule["then"] != "allow":
            continue
        if rule["id"] in named or normalize_words(rule.get("principle", "")) in sentences:
            message = "a sentence with an unexpressed part may deny or escalate, and never allow"
            yield Finding("UNEXPRESSED_ALLOWED", f"{_RULES_PATH_PREFIX}{index}/then", message)


def _sections_to_json(sections: Sequence[RuleSection]) -> list[Any]:
    """Return the stored form of sections; tools are stored as a count, in the order of the batch."""
    return [
        [
            len(section.batch.tools),
            section.batch.is_complete,
            [*section.rules],
            [[one.sentence, one.part, [*one.rule_ids]] for one in section.unexpressed],
        ]
        for section in sections
    ]


def _sections_from_json(written: Sequence[Any], batch: ToolBatch) -> tuple[RuleSection, ...]:
    sections, first = [], 0
    for count, is_all, rules, *unexpressed in written:
        own = batch if count == len(batch.tools) else ToolBatch(batch.tools[first : first + count], is_all)
        parts = unexpressed[0] if unexpressed else ()
        named = tuple(UnexpressedPart(sentence, part, tuple(ids)) for sentence, part, ids in parts)
        sections.append(RuleSection(own, tuple(rules), named))
        first += count
    return tuple(sections)
