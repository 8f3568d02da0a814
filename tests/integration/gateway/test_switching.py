"""One conversation, every turn of which another provider answers over HTTP."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from peripety.core.config import Config, ProviderLimits, ProviderName
from peripety.gateway.calls.executor import CallExecutor
from peripety.gateway.local_gateway import LocalModelGateway
from peripety.gateway.providers.registry import ProviderRegistry
from peripety.gateway.types.message import ChatMessage, ChatRole, Tool, ToolResult
from peripety.gateway.types.request import GenerateRequest
from peripety.gateway.types.response import StopReason
from peripety.llmsim.script.files import ScriptBuilder
from support.gateway.providers import PROVIDERS, config_of
from support.llmsim.simulator import served

if TYPE_CHECKING:
    from peripety.gateway.types.response import Completion
    from support.gateway.providers import Spoken


TOOL = Tool("gauge", "Reads a gauge.", {"type": "object"})
CALLS = [{"tool": "gauge", "input": {"at": place}} for place in (1, 2)]
SCENARIO = (
    ScriptBuilder()
    .respond_to("look", {"reasoning": "hm", "text": "I look.", "tool_calls": CALLS})
    .default_response({"reasoning": "well", "text": "It is 1."})
    .build()
)


def for_all(url: str) -> Config:
    """The settings for all providers at once, but for those that share the variables of another one."""
    settings: dict[str, Any] = {}
    for spoken in reversed(PROVIDERS):
        own = config_of(spoken, url)
        settings |= {name: getattr(own, name) for name in own.model_fields_set}
    return Config(**{**settings, "limits": {name.value: ProviderLimits() for name in ProviderName}})


def results(completion: Completion) -> ChatMessage:
    calls = completion.tool_calls
    return ChatMessage(ChatRole.USER, tuple(ToolResult(call.call_id, "1") for call in calls))


async def test_calls_of_each_provider_are_gone_on_with_by_the_next_one() -> None:
    with served(SCENARIO) as server:
        providers = ProviderRegistry(config := for_all(server.url))
        gateway = LocalModelGateway(providers, CallExecutor(config))
        messages: list[ChatMessage] = []

        async def ask(spoken: Spoken, message: ChatMessage) -> Completion:
            messages.append(message)
            request = GenerateRequest("s", tuple(messages), model=f"{spoken}/{spoken.model}", tools=(TOOL,))
            completion = await gateway.generate(request)
            assert completion.provider == spoken.name.value
            messages.append(completion.message)
            return completion

        for calling, telling in pairwise([*PROVIDERS, *PROVIDERS[::2], PROVIDERS[0]]):
            called = await ask(calling, ChatMessage.user("look"))
            assert (called.stop_reason, called.text) == (StopReason.TOOL_USE, "I look.")
            assert [call.name for call in called.tool_calls] == ["gauge", "gauge"]
            told = await ask(telling, results(called))
            assert (told.stop_reason, told.text) == (StopReason.END, "It is 1.")
            messages.append(ChatMessage.system(f"{telling} is heard"))
        await providers.aclose()
