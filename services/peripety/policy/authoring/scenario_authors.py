"""Scenario authors of a run: one conversation per batch, for first scenarios and for replacements.

After verification, an author receives feedback about its scenarios.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.core.concurrency import closing
from peripety.errors import ConflictError, FailedPreconditionError, Finding, PeripetyError, Severity
from peripety.gateway.types.response import UsageTotal
from peripety.policy.authoring.prompts import (
    SCENARIOS_TASK,
    TaskConversation,
    answer_schema,
    authoring_system_text,
    load_prompt,
    parse_scenarios,
    prompt_material,
    scenario_to_document,
    to_compact_json,
)
from peripety.policy.authoring.run_context import (
    digest_key,
    is_response_error,
    request_in_halves,
    run_concurrently,
)
from peripety.policy.authoring.scenario_merge import (
    ARGUMENT_SCHEMA_RULE,
    request_key,
    with_unique_descriptions,
)
from peripety.policy.authoring.sentence_report import quotes_policy
from peripety.policy.types import CompilePhase, GenerationTurn, ScenarioFeedback, ScenarioOrigin

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence

    from peripety.engine.policies.types import ToolRequest
    from peripety.gateway.types.response import ModelGateway
    from peripety.policy.authoring.run_context import RunContext, ToolBatch
    from peripety.policy.events import CompileProgress
    from peripety.policy.types import (
        AnnotatedTool,
        ContestedScenario,
        DiscardedScenario,
        ScenarioCorrection,
        TestScenario,
    )


_CORRECTED_HEADING = "These scenarios expected the wrong decision:"
_DISCARDED_HEADING = "These scenarios were discarded for the reason given. Do not write them again:"
_CONTESTED_HEADING = (
    "A judge reads the policy as allowing these requests. For each of them, add an entry to `contested`: name"
    " the sentence that forbids the request, word for word, or leave `sentence` empty to withdraw the"
    " scenario:"
)
_UNCOVERED_HEADING = "No scenario covers these requests yet:"
_INSTRUCTION = (
    "Write scenarios that take the place of the {replaced} ones, and scenarios for what is not covered, if"
    " any is listed. Stay consistent with the corrections. Do not repeat a discarded scenario, nor expect"
    " again what a correction calls wrong."
)


def feedback_message(feedback: ScenarioFeedback, *, replace_corrected: bool = False) -> str:
    """Return the message: a section for each list that is not empty, and the instruction at the end.

    Args:
        feedback: the feedback.
        replace_corrected: True to request replacements for the corrected scenarios too.
    """
    sections = (
        _format_section(_CORRECTED_HEADING, map(_format_correction, feedback.corrections)),
        _format_section(_DISCARDED_HEADING, map(_format_discarded, feedback.discarded)),
        _format_section(_UNCOVERED_HEADING, map(_format_probe, feedback.probes)),
        _format_section(_CONTESTED_HEADING, map(_format_contested, feedback.contested)),
        [_INSTRUCTION.format(replaced="corrected and discarded" if replace_corrected else "discarded")],
    )
    return "\n\n".join("\n".join(section) for section in sections if section)


def _format_section(title: str, entries: Iterable[Iterable[str]]) -> list[str]:
    lines = [f"- {'; '.join(entry)}" for entry in entries]
    return [title, *lines] if lines else []


def _format_correction(correction: ScenarioCorrection) -> Iterator[str]:
    yield json.dumps(correction.scenario_description, ensure_ascii=False)
    yield f"not {correction.original_decision.value} but {correction.corrected_decision.value}"
    yield f"because {correction.corrected_reasoning}"


def _format_discarded(discarded: DiscardedScenario) -> Iterator[str]:
    yield json.dumps(discarded.scenario.description, ensure_ascii=False)
    if discarded.rule == ARGUMENT_SCHEMA_RULE:
        yield f"the input schema of the tool rejects its arguments ({ARGUMENT_SCHEMA_RULE})"
    else:
        yield f"the rule {discarded.rule} always decides {discarded.actual.value}, before any other rule"


def _format_contested(contested: ContestedScenario) -> Iterator[str]:
    scenario = contested.scenario
    yield json.dumps(scenario.description, ensure_ascii=False)
    yield f"expects {scenario.expected_decision.value} because {scenario.reasoning}"
    yield f"the judge: {contested.reasoning}"


def _format_probe(probe: TestScenario) -> Iterator[str]:
    request = probe.request
    arguments = json.dumps(dict(request.arguments), ensure_ascii=False, sort_keys=True)
    yield f"{request.server_name}/{request.tool_name} with {arguments}"
    yield f"expected: {probe.expected_decision.value}"


_FIRST_MESSAGE = "Write the scenarios."
_EXISTING_HEADING = "These scenarios exist already. Complement them, and write none of them again:"


class ScenarioGeneratorSession:
    """Conversation about the scenarios of some tools, with feedback on earlier ones.

    A session lasts for one run. The system text never changes, so that it stays in the provider's prompt
    cache; feedback follows as further messages. A turn is only recorded with a valid response. A failed turn,
    including its repair, leaves the conversation unchanged.

    Args:
        gateway: the model gateway.
        system: the common instructions with the material; identical bytes in every turn.
        annotations: the tools; a response must not use others.
        handwritten: existing scenarios, which are not written again.
        model: as in `GenerateRequest.model`.
        max_turns: the maximum number of turns; None for no limit.
        replace_corrected: True to request replacements for corrected scenarios.

    Attributes:
        max_turns: the maximum number of turns; None for no limit.
        turns: usage of the turns, oldest first, including cache reads and writes.
        justifications: the sentences that the last response names for contested scenarios, by their
            descriptions; empty for a withdrawn one.
        model: the model of the last response, as `provider/model`; empty before the first.
    """

    def __init__(
        self,
        gateway: ModelGateway,
        system: str,
        annotations: Sequence[AnnotatedTool],
        *,
        handwritten: Sequence[TestScenario] = (),
        model: str | None = None,
        max_turns: int | None = None,
        replace_corrected: bool = False,
    ) -> None:
        self._conversation = TaskConversation(gateway, SCENARIOS_TASK, system, annotations, model)
        self._handwritten = tuple(handwritten)
        self._replace_corrected = replace_corrected
        self.max_turns = max_turns
        self.turns: tuple[GenerationTurn, ...] = ()
        self.justifications: dict[str, str] = {}
        self.model = ""

    @property
    def turn_count(self) -> int:
        """The number of completed turns."""
        return len(self.turns)

    def get_history(self) -> list[dict[str, str]]:
        """Return the messages, oldest first, as objects with `role` and `content`."""
        return [
            {"role": message.role.value, "content": message.text} for message in self._conversation.messages
        ]

    async def generate(self, on_progress: Callable[[str], None] | None = None) -> tuple[TestScenario, ...]:
        """Request scenarios in the first turn.

        Args:
            on_progress: receives a sentence about the current step.

        Returns:
            The handwritten scenarios, then the new ones with other requests.

        Raises:
            ConflictError: the session has already begun.
            PeripetyError: as raised by `ModelGateway.stream`.
        """
        if self.turn_count:
            raise ConflictError("conversation has already begun; use regenerate", code="CONVERSATION_STARTED")
        told = (_FIRST_MESSAGE, *self._existing_section())
        written = await self._run_turn("\n\n".join(told), on_progress)
        known = {request_key(scenario.request) for scenario in self._handwritten}
        new = (scenario for scenario in written if request_key(scenario.request) not in known)
        return (*self._handwritten, *with_unique_descriptions(new, self._handwritten))

    async def regenerate(
        self,
        feedback: ScenarioFeedback,
        on_progress: Callable[[str], None] | None = None,
    ) -> tuple[TestScenario, ...]:
        """Send feedback and request replacements.

        Args:
            feedback: the feedback.
            on_progress: receives a sentence about the current step.

        Returns:
            The new scenarios only; the caller merges them.

        Raises:
            FailedPreconditionError: the first turn is missing (code CONVERSATION_NOT_STARTED), or the turn
                limit is reached (code MAX_TURNS_REACHED).
            PeripetyError: as raised by `ModelGateway.stream`.
        """
        if not self.turn_count:
            raise FailedPreconditionError(
                "conversation has not begun; use generate", code="CONVERSATION_NOT_STARTED"
            )
        if self.max_turns is not None and self.turn_count >= self.max_turns:
            raise FailedPreconditionError(
                f"turn limit of {self.max_turns} reached; raise it",
                code="MAX_TURNS_REACHED",
            )
        message = feedback_message(feedback, replace_corrected=self._replace_corrected)
        return await self._run_turn(message, on_progress)

    def _existing_section(self) -> list[str]:
        if not self._handwritten:
            return []
        lines = (to_compact_json(scenario_to_document(scenario)) for scenario in self._handwritten)
        return ["\n".join((_EXISTING_HEADING, *lines))]

    async def _run_turn(
        self,
        message: str,
        on_progress: Callable[[str], None] | None,
    ) -> tuple[TestScenario, ...]:
        number = self.turn_count + 1
        if on_progress is not None:
            on_progress(f"requesting scenarios, turn {number}")
        completion = await self._conversation.send(message)
        value = completion.value
        written = parse_scenarios(value["scenarios"] if value else (), ScenarioOrigin.GENERATED)
        named = value.get("contested", ()) if value else ()
        self.justifications = {one["description"]: one["sentence"] for one in named}
        self.turns += (
            GenerationTurn(number, len(written), completion.repaired, UsageTotal.from_completion(completion)),
        )
        self.model = f"{completion.provider}/{completion.model}"
        return written


async def generate_scenarios(
    gateway: ModelGateway,
    system: str,
    annotations: Sequence[AnnotatedTool],
    *,
    handwritten: Sequence[TestScenario] = (),
    model: str | None = None,
) -> tuple[TestScenario, ...]:
    """Request scenarios once, without a session; as `ScenarioGeneratorSession.generate`.

    Without tools, the handwritten scenarios are returned without a model call.
    """
    if not annotations:
        return tuple(handwritten)
    session = ScenarioGeneratorSession(gateway, system, annotations, handwritten=handwritten, model=model)
    return await session.generate()


_EXHAUSTED_CODES = frozenset({"MAX_TURNS_REACHED"})


@dataclass(frozen=True, slots=True)
class AuthorContribution:
    """The result of one turn of an author.

    Attributes:
        batch: the tools of the scenarios.
        scenarios: the new scenarios.
        turn: usage of the turn; None for cached scenarios.
        session: the conversation; None for cached scenarios.
        feedback: the feedback that the scenarios respond to.
    """

    batch: ToolBatch
    scenarios: tuple[TestScenario, ...]
    turn: GenerationTurn | None
    session: ScenarioGeneratorSession | None
    feedback: ScenarioFeedback = ScenarioFeedback()  # noqa: RUF009 - frozen


class ScenarioAuthorPool:
    """Pool of the scenario authors of all batches.

    Cached scenarios of equal inputs are used without a conversation. No replacements are requested for them.

    Args:
        context: the run.

    Attributes:
        contributions: the latest results, in the order of the batches.
        turns: the turns of all conversations, in that order.
    """

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._sessions: dict[ToolBatch, ScenarioGeneratorSession] = {}
        self._pending_feedback: dict[ToolBatch, ScenarioFeedback] = {}
        self.contributions: tuple[AuthorContribution, ...] = ()
        self.turns: tuple[GenerationTurn, ...] = ()

    async def write(self, batch: ToolBatch) -> tuple[AuthorContribution, ...]:
        """Write the scenarios of a batch, or of its parts if one response cannot hold them.

        Raises:
            PeripetyError: as raised by `ModelGateway.stream`.
        """
        context = self._context
        own = self._handwritten_for(batch)
        system = self._system_text(batch)
        schema = answer_schema(batch.tools)
        key = digest_key(
            SCENARIOS_TASK,
            context.order.model,
            system,
            load_prompt(SCENARIOS_TASK),
            [*map(scenario_to_document, own)],
            schema,
            batch.is_complete,
        )
        kept = await context.artifacts.get(key)
        if kept is not None:
            scenarios = parse_scenarios(json.loads(kept), ScenarioOrigin.GENERATED)
            return (AuthorContribution(batch, scenarios, None, None),)
        parts = tuple(part for _, part in await request_in_halves(batch, self._start_conversation))
        written = [scenario_to_document(scenario) for part in parts for scenario in part.scenarios]
        await context.artifacts.put(key, to_compact_json(written).encode())
        return parts

    def start_conversations(self, contributions: Sequence[AuthorContribution]) -> None:
        """Record the first contributions, so that their authors can write replacements."""
        self.contributions = tuple(contributions)
        self._sessions = {one.batch: one.session for one in contributions if one.session is not None}
        self._pending_feedback = dict.fromkeys(self._sessions, ScenarioFeedback())
        self.turns = tuple(one.turn for one in contributions if one.turn is not None)

    def add_feedback(self, feedback: ScenarioFeedback, scenarios: Iterable[TestScenario]) -> None:
        """Add feedback for the next turn of the authors that it concerns.

        Args:
            feedback: the feedback.
            scenarios: the scenarios that the corrections refer to.
        """
        requests = {scenario.description: scenario.request for scenario in scenarios}
        for batch, before in self._pending_feedback.items():
            self._pending_feedback[batch] = ScenarioFeedback(
                (
                    *before.corrections,
                    *(one for one in feedback.corrections if _concerns_batch(batch, requests, one)),
                ),
                (
                    *before.discarded,
                    *(one for one in feedback.discarded if batch.contains(one.scenario.request)),
                ),
                (*before.probes, *(one for one in feedback.probes if batch.contains(one.request))),
                (
                    *before.contested,
                    *(one for one in feedback.contested if batch.contains(one.scenario.request)),
                ),
            )

    @property
    def has_pending_turns(self) -> bool:
        """Return True if an author has to write replacements."""
        return any(map(self._needs_turn, self._pending_feedback.values()))

    async def write_replacements(self) -> AsyncIterator[CompileProgress]:
        """Write replacements in all conversations with open feedback; the results are in `contributions`.

        An author without a valid response or without turns left contributes nothing.

        Raises:
            PeripetyError: as raised by `ModelGateway.stream`, except for invalid responses.
        """
        asked = [(batch, part) for batch, part in self._pending_feedback.items() if self._needs_turn(part)]
        self._pending_feedback |= dict.fromkeys((batch for batch, _ in asked), ScenarioFeedback())
        turns = [self._sessions[batch].regenerate(part) for batch, part in asked]
        written: dict[int, AuthorContribution] = {}
        async with closing(run_concurrently(turns)) as answers:
            async for number, answer in answers:
                batch, part = asked[number]
                session = self._sessions[batch]
                if not isinstance(answer, PeripetyError):
                    written[number] = AuthorContribution(batch, answer, session.turns[-1], session, part)
                elif is_response_error(answer) or answer.code in _EXHAUSTED_CODES:
                    message = f"about {batch.name}: {answer.message}"
                    self._context.add_warning(Finding("NOT_REPLACED", "", message, Severity.WARNING))
                else:
                    raise answer
                share = (len(written) + 1) / (len(asked) + 1)
                message = f"more scenarios for {batch.name}"
                yield self._context.make_progress(CompilePhase.REPAIRING, message, share)
        self.contributions = tuple(written[number] for number in sorted(written))
        self.turns += tuple(one.turn for one in self.contributions if one.turn is not None)

    def _needs_turn(self, feedback: ScenarioFeedback) -> bool:
        """Return True if replacements are needed; corrections alone are applied in place."""
        again = self._context.order.replace_corrected and feedback.corrections
        return bool(feedback.discarded or feedback.probes or feedback.contested or again)

    def find_withdrawn(self) -> tuple[TestScenario, ...]:
        """Return the contested scenarios for which the last contributions name no sentence of the policy."""
        policy = self._context.order.constitution
        return tuple(
            one.scenario
            for contribution in self.contributions
            if contribution.session is not None
            for one in contribution.feedback.contested
            for sentence in [contribution.session.justifications.get(one.scenario.description)]
            if sentence is not None and not quotes_policy(sentence, policy)
        )

    async def _start_conversation(self, batch: ToolBatch) -> AuthorContribution:
        order = self._context.order
        own = self._handwritten_for(batch)
        session = ScenarioGeneratorSession(
            self._context.gateway,
            self._system_text(batch),
            batch.tools,
            handwritten=own,
            model=order.model,
            max_turns=order.limits.turns,
            replace_corrected=order.replace_corrected,
        )
        scenarios = await session.generate()
        return AuthorContribution(batch, scenarios[len(own) :], session.turns[-1], session)

    def _system_text(self, batch: ToolBatch) -> str:
        return authoring_system_text(prompt_material(self._context.order, batch.tools))

    def _handwritten_for(self, batch: ToolBatch) -> tuple[TestScenario, ...]:
        return tuple(one for one in self._context.order.handwritten if batch.contains(one.request))


def _concerns_batch(
    batch: ToolBatch,
    requests: Mapping[str, ToolRequest],
    correction: ScenarioCorrection,
) -> bool:
    request = requests.get(correction.scenario_description)
    return request is not None and batch.contains(request)
