"""Outline author: a scenario from a weak model, by an outline and then section after section.

The outline has the names of quantities, actions and events. Each later answer has a small schema with the
names of earlier answers. Names are cleaned: short, valid and unique. The result is a blueprint. Numbers,
paths and conditions are derived by rules, and so are omitted parts.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, count, islice
from typing import TYPE_CHECKING, Any

from peripety.author.blueprint import Action, Event, Flow, Quantity, Role, SeededChoice, Size
from peripety.author.blueprint_builder import MIN_TERMS, compose_from_analysis
from peripety.author.spec_author import author_from_text, build_spec
from peripety.author.spec_builder.quantities import is_beneficial
from peripety.author.text_analysis.languages import clean_text, truncate_graphemes
from peripety.author.text_analysis.terms import NAME_LIMIT, TERM_LIMIT, Term, TermSet, extract_terms, fit_name
from peripety.core.concurrency import closing
from peripety.errors import Finding, Severity
from peripety.gateway.conversations.conversation import Conversation
from peripety.gateway.types.request import GenerationOptions, ResponseSchema
from peripety.scenario.generation.draft_cache import load_prompt
from peripety.scenario.outline_authoring.section_prompts import OUTLINE_SECTIONS
from peripety.scenario.types import ProgressStage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from peripety.author.blueprint import Blueprint
    from peripety.gateway.types.response import ModelGateway
    from peripety.scenario.generation.model_client import ModelAnswer, ModelClient
    from peripety.scenario.outline_authoring.section_prompts import OutlineSection
    from peripety.scenario.types import GenerationOrder, Progress


_ENOUGH_RULES = 4
"""The number of a model's own actions, or events, that is enough; rules add to fewer of them."""
_HELPFUL_INTERVAL = 3
"""One in this many default events is helpful."""


def fill_gaps(blueprint: Blueprint, rule_based: Blueprint) -> Iterator[Blueprint]:
    """Yield completed blueprints, from the one closest to the model's answers to the safest one.

    In each of them every action has a gain and every event has an effect. The model's answers may still
    result in an unfair scenario. Then rule-based parts are added, and in the last blueprint they replace the
    model's.

    Args:
        blueprint: the blueprint from the model's answers.
        rule_based: the rule-based blueprint of the same words.
    """
    seen = [one for one in blueprint.quantities if not one.is_unseen]
    roles = {one.name: one.role for one in blueprint.quantities}
    own = replace(
        blueprint,
        quantities=(*blueprint.quantities, *(one for one in rule_based.quantities if one.is_unseen)),
        actions=tuple(
            replace(action, flows=_with_gain(action.flows, roles) or _default_action_flows(index, seen))
            for index, action in enumerate(blueprint.actions)
        ),
        events=tuple(
            event if event.flows else replace(event, flows=(_default_event_flow(index, seen),))
            for index, event in enumerate(blueprint.events)
        ),
    )
    beside = replace(
        own,
        actions=(*own.actions[:_ENOUGH_RULES], *rule_based.actions),
        events=(*own.events[:_ENOUGH_RULES], *rule_based.events),
    )
    yield replace(
        beside,
        actions=own.actions if len(own.actions) >= _ENOUGH_RULES else beside.actions,
        events=own.events if len(own.events) >= _ENOUGH_RULES else beside.events,
    )
    yield beside
    yield replace(own, actions=rule_based.actions, events=rule_based.events)


def _with_gain(flows: Sequence[Flow], roles: Mapping[str, Role]) -> tuple[Flow, ...]:
    """Return the changes; the first one is made a gain if all are losses."""
    if not flows or any(is_beneficial(roles[flow.quantity], rises=flow.rises) for flow in flows):
        return tuple(flows)
    first, *others = flows
    return (replace(first, rises=not first.rises), *others)


def _default_action_flows(index: int, quantities: Sequence[Quantity]) -> tuple[Flow, Flow]:
    """Return a gain of one quantity and a price in another."""
    gained, lost = quantities[-1 - index % len(quantities)], quantities[index % len(quantities)]
    if gained is lost:
        lost = quantities[(index + 1) % len(quantities)]
    return _better_flow(gained), _worse_flow(lost)


def _default_event_flow(index: int, quantities: Sequence[Quantity]) -> Flow:
    struck = quantities[index % len(quantities)]
    return _better_flow(struck) if index % _HELPFUL_INTERVAL == _HELPFUL_INTERVAL - 1 else _worse_flow(struck)


def _better_flow(quantity: Quantity) -> Flow:
    return Flow(quantity.name, is_beneficial(quantity.role, rises=True), Size.MEDIUM)


def _worse_flow(quantity: Quantity) -> Flow:
    return Flow(quantity.name, is_beneficial(quantity.role, rises=False), Size.SMALL)


NAME_SCHEMA = {
    "type": "string",
    # Without digits and dots a small model writes words; otherwise it writes dates and addresses.
    "pattern": rf"^[^0-9\"\\{{}}\[\]<>$%_/:.,]{{1,{TERM_LIMIT}}}$",
    "maxLength": TERM_LIMIT,
}
"""The JSON Schema of a name."""


def clean_name(value: Any, limit: int = TERM_LIMIT) -> str:
    """Return a value as a name; empty if it is not usable."""
    text = value if isinstance(value, str) and "://" not in value else ""
    if len(text) >= limit:
        # The limit may have truncated the last word.
        text = text.rpartition(" ")[0] or text
    name = fit_name(text, limit)
    is_word = any(char.isalpha() for char in name) and (len(name) > 1 or not name.isascii())
    return name if is_word else ""


class NameCollector:
    """Collector of unique names.

    The first argument lists the names in use.

    Args:
        stop_words: words, in lower case, that are not a name by themselves.
    """

    def __init__(self, used_names: Iterable[str], stop_words: Collection[str]) -> None:
        self._used_names = {name.casefold() for name in used_names}
        self._stop_words = frozenset(stop_words)

    def collect(self, values: Any, *, limit: int) -> tuple[str, ...]:
        """Return the new names among values."""
        names = map(clean_name, values) if isinstance(values, list) else ()
        return tuple(
            islice((name for name in names if self._is_meaningful(name) and self.reserve(name)), limit),
        )

    def reserve(self, name: str) -> bool:
        """Reserve a name; return True if it was free."""
        folded = name.casefold()
        if folded in self._used_names:
            return False
        self._used_names.add(folded)
        return True

    def _is_meaningful(self, name: str) -> bool:
        return not self._stop_words.issuperset(name.casefold().split())


PROMPT_NAME = "stepwise"
"""The name of the system prompt."""

_WORD = re.compile(r"\w+")
_MAX_EXCERPT = 2_000
_MAX_WORDS = 12

_ROLES = {"resources": Role.SUPPLY, "assets": Role.WARD, "dangers": Role.THREAT, "goals": Role.GOAL}
"""The lists of quantities, by role."""
_MAX_PER_ROLE = 2
_MAX_SECRETS = 2
_MAX_PEOPLE = 4
_MIN_RULES, _MAX_RULES = 4, 8


def _names_schema(at_least: int, at_most: int) -> dict[str, Any]:
    return {"type": "array", "items": NAME_SCHEMA, "minItems": at_least, "maxItems": at_most}


def _outline_schema() -> dict[str, Any]:
    properties = {
        "title": {"type": "string", "minLength": 1, "maxLength": NAME_LIMIT},
        **{key: _names_schema(1, _MAX_PER_ROLE) for key in _ROLES},
        "secrets": _names_schema(0, _MAX_SECRETS),
        "people": _names_schema(0, _MAX_PEOPLE),
        "actions": _names_schema(_MIN_RULES, _MAX_RULES),
        "events": _names_schema(_MIN_RULES, _MAX_RULES),
        "deadline": {"type": "boolean"},
    }
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


OUTLINE_SCHEMA: Mapping[str, Any] = _outline_schema()
"""The JSON Schema of an outline: flat, and as short as possible."""


def outline_request(description: str) -> dict[str, Any]:
    """Return the request for an outline: an excerpt of the description for a small context, and its keywords.

    A small model copies better than it reads, so the keywords of the text are added.
    """
    about = extract_terms(description, min_terms=0, max_terms=_MAX_WORDS)
    excerpt = truncate_graphemes(clean_text(description[:_MAX_EXCERPT]), _MAX_EXCERPT)
    return {"description": excerpt, "words": [*(term.text for term in about.terms), *about.people]}


def extract_outline_terms(outline: Mapping[str, Any], description: str) -> TermSet:
    """Return the terms of an outline, which may violate its schema, followed by those of the description.

    Numbers and time spans are from the description.
    """
    title = clean_name(outline.get("title"), NAME_LIMIT)
    source = description if description.strip() else title
    about = extract_terms(source, min_terms=0, max_terms=_MAX_WORDS)
    people = NameCollector((), about.language.stop).collect(
        [*_names_in_description(outline.get("people"), description), *about.people],
        limit=_MAX_PEOPLE,
    )
    # A person is not a quantity, not even one that the description does not name.
    names = _collect_names(description, [*people, about.player, *_person_names(outline)])
    amounts = {term.text.casefold(): term.amount for term in about.terms}
    said = [
        Term(name, role, amounts.get(name.casefold()))
        for key, role in _ROLES.items()
        for name in names.collect(outline.get(key), limit=_MAX_PER_ROLE)
    ]
    said += (term for term in about.terms if names.reserve(term.text))
    again = extract_terms(source, min_terms=2 * MIN_TERMS, max_terms=2 * MIN_TERMS).terms
    weaker = chain(again, map(Term, map(str, count(1))))
    said += islice((term for term in weaker if names.reserve(term.text)), max(MIN_TERMS - len(said), 0))
    named = title or about.title or said[0].text
    return TermSet(named, about.language, tuple(said), people, about.spans, about.player)


def parse_outline(outline: Mapping[str, Any], description: str, rule_based: Blueprint) -> Blueprint:
    """Parse an outline into a blueprint with public quantities, secrets, and the names of rules.

    Args:
        outline: the answer, which may violate its schema.
        description: the description of the scenario.
        rule_based: the blueprint composed from `extract_outline_terms` the outline.
    """
    seen = tuple(one for one in rule_based.quantities if not one.is_unseen)
    used = [*rule_based.people, *_person_names(outline), *(one.term for one in seen)]
    names = _collect_names(description, used)
    secrets = names.collect(outline.get("secrets"), limit=_MAX_SECRETS)
    return replace(
        rule_based,
        quantities=(*seen, *(Quantity(name, Role.THREAT, is_hidden=True) for name in secrets)),
        actions=tuple(Action(name, ()) for name in names.collect(outline.get("actions"), limit=_MAX_RULES)),
        events=tuple(Event(name, ()) for name in names.collect(outline.get("events"), limit=_MAX_RULES)),
        has_deadline=bool(rule_based.due_hours) or outline.get("deadline") is True,
    )


def _collect_names(description: str, used_names: Iterable[str]) -> NameCollector:
    """Return a name collector without words of the prompt, which weak models repeat."""
    told, about = (set(_WORD.findall(text.casefold())) for text in (load_prompt(PROMPT_NAME), description))
    return NameCollector(used_names, told - about)


def _person_names(outline: Mapping[str, Any]) -> list[str]:
    """Return the people of an outline as names."""
    people = outline.get("people")
    return [clean_name(name) for name in (people if isinstance(people, list) else [])]


def _names_in_description(names: Any, description: str) -> list[str]:
    """Return the names that occur in the description."""
    said = names if isinstance(names, list) else []
    return [name for name in said if isinstance(name, str) and name.casefold() in description.casefold()]


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
    _ADDED,
    message="the model's actions and events do not result in a fair scenario; rules wrote both",
)


_CONTRADICTORY = Finding(
    "CONTRADICTORY_PARTS",
    "",
    "the model's answers about actions or events contradict themselves, as random choices do; rules wrote all"
    " but the names",
)


@dataclass(frozen=True, slots=True)
class OutlineCandidate:
    """Candidate specification from the model's answers.

    Attributes:
        build_spec: builds a valid specification; CPU-bound.
        findings: findings about the way of its generation; with an error it cannot be certified.
    """

    build_spec: Callable[[], dict[str, Any]]
    findings: tuple[Finding, ...]


class OutlineAuthor:
    """Outline authoring of one scenario.

    Args:
        client: sends the requests, and counts their usage.
        gateway: the model gateway.
        order: the order.
        seed: the seed of the scenario.

    Attributes:
        candidates: candidate specifications, the preferred one first; set at the end of the events.
        answer: the last usable answer of the model; None without one.
    """

    def __init__(self, client: ModelClient, gateway: ModelGateway, order: GenerationOrder, seed: int) -> None:
        self._client = client
        options = GenerationOptions(model=order.model, temperature=_TEMPERATURE)
        self._conversation = Conversation(gateway, load_prompt(PROMPT_NAME), options=options)
        self._description = order.description
        self._language = order.language
        self._seed = seed
        self._gaps: list[Finding] = []
        self.candidates: tuple[OutlineCandidate, ...] = ()
        self.answer: ModelAnswer | None = None

    async def events(self) -> AsyncIterator[Progress]:
        """Request all parts, within the limits of the order, and set the attributes.

        Raises:
            PeripetyError: a request failed, and a smaller one would not succeed.
        """
        async with closing(self._request("an outline", self._outline_request(), OUTLINE_SCHEMA)) as steps:
            async for step in steps:
                yield step
        outline = self._last_answer()
        if outline is None:
            message = (
                f"the model gave no usable answer{self._failure_suffix()}; rules "
                "wrote the scenario from the description"
            )
            found = Finding("WITHOUT_MODEL", "", message, Severity.WARNING)
            self.candidates = (
                OutlineCandidate(
                    partial(author_from_text, self._description, self._seed, language=self._language),
                    (found,),
                ),
            )
            return
        by_rules = self._compose_by_rules(outline)
        blueprint = parse_outline(outline, self._description, by_rules)
        contradictory = False
        for section in OUTLINE_SECTIONS:
            parts = section.parts(blueprint)
            if not parts:
                continue
            question = {"write": section.name, "of": [part.name for part in parts]}
            async with closing(self._request(section.name, question, section.schema(blueprint))) as steps:
                async for step in steps:
                    yield step
            told = self._last_answer()
            contradictory = contradictory or section.contradicts_itself(blueprint, told)
            blueprint, missing = section.apply_answer(blueprint, told)
            self._add_gap(section, missing, len(parts))
        if contradictory:
            self.candidates = (self._to_candidate(by_rules, (_WORDS_ONLY, _CONTRADICTORY)),)
        else:
            self.candidates = tuple(self._build_candidates(fill_gaps(blueprint, by_rules)))

    def _outline_request(self) -> dict[str, Any]:
        request = {"write": "outline", **outline_request(self._description)}
        return {**request, "language": self._language} if self._language else request

    async def _request(
        self,
        what: str,
        question: Mapping[str, Any],
        schema: Mapping[str, Any],
    ) -> AsyncIterator[Progress]:
        yield self._client.progress(ProgressStage.AUTHORING, f"requesting {what}")
        asked = self._client.request(
            self._conversation,
            question,
            ResponseSchema("scenario_part", schema, advisory=True),
            answer_tokens=_MAX_TOKENS,
        )
        async with closing(asked) as steps:
            async for step in steps:
                yield step

    def _last_answer(self) -> dict[str, Any] | None:
        """Return the last answer if it is an object."""
        answer = self._client.answer
        if answer is None or not isinstance(answer.value, dict):
            return None
        self.answer = answer
        return answer.value

    def _add_gap(self, section: OutlineSection, missing: int, of: int) -> None:
        if missing:
            told = f"no usable answer for {missing} of {of} {section.name}{self._failure_suffix()}"
            message = f"the model gave {told}; rules wrote the rest"
            found = Finding("FILLED_BY_RULES", section.path, message, Severity.WARNING)
            self._gaps.append(found)

    def _failure_suffix(self) -> str:
        failure = self._client.failure
        return f" ({failure.message})" if failure else ""

    def _compose_by_rules(self, outline: Mapping[str, Any]) -> Blueprint:
        words = extract_outline_terms(outline, self._description)
        return compose_from_analysis(words, SeededChoice(repr(words.terms), self._seed).choose_number)

    def _build_candidates(self, blueprints: Iterable[Blueprint]) -> Iterator[OutlineCandidate]:
        before: Blueprint | None = None
        for blueprint, how in zip(blueprints, ((), (_ADDED,), (_REPLACED,)), strict=True):
            if blueprint != before:
                yield self._to_candidate(blueprint, (_WORDS_ONLY, *self._gaps, *how))
            before = blueprint

    def _to_candidate(self, blueprint: Blueprint, findings: tuple[Finding, ...]) -> OutlineCandidate:
        marks = hashlib.sha256(repr((blueprint, self._seed)).encode("utf-8", "replace"))
        spec_id = f"stepwise_{marks.hexdigest()[:12]}"
        return OutlineCandidate(partial(build_spec, blueprint, self._seed, spec_id=spec_id), findings)
