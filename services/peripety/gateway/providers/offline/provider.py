"""Offline provider, the default: no model, no key and no network.

It authors scenarios, policies and tests by rules, and narrates turns from templates.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any

from peripety.author.narration import narrate
from peripety.author.plots.plot import DEFAULT_LANGUAGE, PLAIN, list_languages, load_texts
from peripety.author.spec_author import author_from_text
from peripety.author.text_analysis.languages import OFFLINE_MARK
from peripety.author.text_analysis.reading import find_language
from peripety.engine.schemas import OUTCOME, SCENARIO_SPEC
from peripety.errors import FailedPreconditionError
from peripety.gateway.providers.offline.answers import (
    ASK_PLAYER,
    GENERATE_TEST,
    POLICY_ANSWERS,
    TEST_ANSWERS,
    action_name,
    answer_tests,
    match_action,
    merge_call_results,
    parse_scenario_prompt,
    parse_turn_prompt,
    rank_actions,
)
from peripety.gateway.providers.provider import AnswerFinished, ProviderCall, ProviderEvent
from peripety.gateway.types.message import ChatRole, Text, ToolCall, ToolChoice, ToolChoiceMode
from peripety.gateway.types.response import (
    SchemaMethod,
    SchemaReport,
    StopReason,
    TextDelta,
    ToolCallDelta,
    Usage,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.gateway.types.request import GenerateRequest, ResponseSchema


_PIECE = re.compile(r"\S{1,24}\s*|\s+")
_MODEL_SETUP_HINT = (
    "set MODEL_PROVIDER to anthropic, openai, gemini or deepseek with its key (such as ANTHROPIC_API_KEY), "
    "to ollama, or to generic with OPENAI_API_BASE, the address of an OpenAI-compatible server; set "
    "MODEL_NAME to the model, and start again"
)
_NAMED_ACTIONS = 3
_ANSWERS = {**POLICY_ANSWERS, **TEST_ANSWERS}
_NO_MORE_TESTS = f"Nothing more follows from what is known {OFFLINE_MARK}."
_NO_MODEL = (
    "No language model is configured. The offline provider writes scenarios, tests and policy rules from the "
    "words of the request and narrates turns from their facts; it cannot converse. To use a model, "
    f"{_MODEL_SETUP_HINT}. {OFFLINE_MARK}"
)


class OfflineProvider:
    """Provider without a model, a key or a network; deterministic.

    Before it narrates a turn, it calls the action that the player's words name. If they name none, the
    player gets a question, and the turn is not played.

    An answer is never truncated, regardless of `max_output_tokens`. Usage is zero, because no model processes
    a token.
    """

    name = "offline"
    model = "offline"
    account = ""

    async def stream(self, call: ProviderCall) -> AsyncIterator[ProviderEvent]:
        """Stream the answer word by word.

        Raises:
            InvalidArgumentError: a turn should be narrated, but its facts are missing.
            FailedPreconditionError: the answer has to match a schema that only a model can fill.
        """
        taken = _pending_action_call(call.request)
        if taken is not None:
            yield ToolCallDelta(taken.call_id, taken.arguments, taken.name)
            yield AnswerFinished((taken,), StopReason.TOOL_USE, Usage(), self.name)
            return
        schema = call.request.schema
        if schema is None and any(tool.name == GENERATE_TEST for tool in call.request.tools):
            async for event in self._call_test_tool(call.request):
                yield event
            return
        if schema is not None and schema.name in _ANSWERS:
            # Long policies and the search for tests are slow; they must not block other calls.
            text = await asyncio.to_thread(_create_answer, call.request)
        else:
            text = _create_answer(call.request)
        for piece in _PIECE.findall(text):
            yield TextDelta(piece)
            await asyncio.sleep(0)
        report = None if call.request.schema is None else SchemaReport(SchemaMethod.NATIVE)
        yield AnswerFinished((Text(text),), StopReason.END, Usage(), self.name, report)

    async def _call_test_tool(self, request: GenerateRequest) -> AsyncIterator[ProviderEvent]:
        """Call the tool once for each test."""
        tests = await asyncio.to_thread(answer_tests, request)
        calls = tuple(
            ToolCall(f"offline_{number}", GENERATE_TEST, json.dumps(test, ensure_ascii=False))
            for number, test in enumerate(tests, start=1)
        )
        for call in calls:
            yield ToolCallDelta(call.call_id, call.arguments, call.name)
            await asyncio.sleep(0)
        if calls:
            yield AnswerFinished(calls, StopReason.TOOL_USE, Usage(), self.name)
        else:
            yield TextDelta(_NO_MORE_TESTS)
            yield AnswerFinished((Text(_NO_MORE_TESTS),), StopReason.END, Usage(), self.name)

    async def count_tokens(self, _call: ProviderCall) -> int:
        """Return 0: no model reads anything."""
        return 0

    async def aclose(self) -> None:
        """Do nothing: the provider holds no connections."""


def _pending_action_call(request: GenerateRequest) -> ToolCall | None:
    """Return the action call that precedes the narration of a turn."""
    is_turn = request.schema is not None and request.schema.name == OUTCOME
    if not is_turn or not request.tools or request.tool_choice == ToolChoice(ToolChoiceMode.NONE):
        return None
    if any(message.tool_calls for message in request.messages):
        return None
    words = parse_turn_prompt(request.messages).facts.get("input")
    if not words:
        return None
    return match_action(str(words), request.tools) or _question_call(request, str(words))


def _question_call(request: GenerateRequest, words: str) -> ToolCall | None:
    """Return the call of a question that names the likeliest actions; None if it is not offered."""
    offered = any(tool.name == ASK_PLAYER for tool in request.tools)
    names = [action_name(tool) for tool, _ in rank_actions(words, request.tools)]
    if not offered:
        return None
    language = find_language("\n".join(names or [words]))
    common = load_texts(PLAIN, language if language in list_languages() else DEFAULT_LANGUAGE)["common"]
    examples = common["comma"].join(names[:_NAMED_ACTIONS])
    question = common["which_of"].format(names=examples) if examples else common["which_action"]
    return ToolCall("offline", ASK_PLAYER, json.dumps({"question": question}, ensure_ascii=False))


def _create_answer(request: GenerateRequest) -> str:
    if request.schema is None:
        return _NO_MODEL
    return json.dumps(_structured_answer(request.schema, request), ensure_ascii=False)


def _structured_answer(schema: ResponseSchema, request: GenerateRequest) -> dict[str, Any]:
    said = [message.text for message in request.messages if message.role is ChatRole.USER]
    if schema.name == SCENARIO_SPEC:
        asked = parse_scenario_prompt(said)
        seed = request.seed if asked.seed is None else asked.seed
        return author_from_text(asked.text, seed, asked.tries, asked.language)
    if schema.name == OUTCOME:
        turn = parse_turn_prompt(request.messages, request.system or "")
        return narrate(merge_call_results(turn.facts, request), turn.history, turn.scene)
    if schema.name in _ANSWERS:
        return _ANSWERS[schema.name](request)
    raise FailedPreconditionError(
        f"the offline provider cannot fill the schema '{schema.name}'; for that, {_MODEL_SETUP_HINT}",
        code="MODEL_REQUIRED",
    )
