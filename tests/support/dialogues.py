"""Conversations with every provider there is: the scripted LLM answers, and no network carries it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from pydantic import SecretStr

from peripety.core.config import Config, ProviderName
from peripety.gateway.models.catalog import ModelCatalog
from peripety.gateway.providers.error_mapping import ErrorMapper
from peripety.gateway.providers.registry import WIRES, endpoint_of
from peripety.gateway.providers.stream_framing import NdjsonDecoder, SseDecoder, StreamFraming
from peripety.llmsim.server.routing import WIRES as THEIRS
from peripety.llmsim.server.routing import Router
from peripety.llmsim.wire.base import HttpCall as SimulatedCall
from support.wires import FakeService

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from peripety.gateway.providers.provider import AnswerFinished, Endpoint, ProviderCall
    from peripety.gateway.providers.wire import AnswerDecoder, RequestBody, WireProtocol
    from peripety.llmsim.types import SimReply, SimRequest


KEY = SecretStr("sk-canary")
_SERVER = "http://127.0.0.1:1"
_CONFIG = Config(
    openai_api_base=f"{_SERVER}/v1",
    openai_api_key=KEY,
    anthropic_api_key=KEY,
    gemini_api_key=KEY,
    deepseek_api_key=KEY,
    azure_api_base=_SERVER,
    azure_api_key=KEY,
    scripted_api_base=_SERVER,
)
_ROUTER = Router(THEIRS)


PROVIDERS = tuple(WIRES)
"""The providers that are asked over HTTP."""


def models_of(provider: ProviderName) -> list[str]:
    """The models that are known of a provider, and that it takes tools for."""
    models = ModelCatalog.load().models(provider.value)
    chat = ProviderName.OPENAI
    return [
        model.name
        for model in models
        if provider is not chat or model.traits.tools_while_reasoning or model.traits.reasoning_can_be_off
    ] or ["m"]


@dataclass(frozen=True)
class Asked:
    """A call as the scripted LLM took it; to be asked that raises `ApiError` where the provider would refuse.

    Attributes:
        call: what was asked.
        body: what it became.
        request: what the scripted LLM made of that.
    """

    call: ProviderCall
    body: RequestBody
    request: SimRequest
    _endpoint: Endpoint
    _ours: WireProtocol
    _theirs: Any

    @classmethod
    def of(cls, provider: ProviderName, call: ProviderCall) -> Asked:
        ours = WIRES[provider]
        endpoint = endpoint_of(provider, _CONFIG)
        body = ours.body(call)
        url = urlsplit(endpoint.base_url + ours.path(call))
        headers = {name.lower(): value for name, value in ours.headers(call, KEY).items()}
        data = json.dumps(body.document).encode()
        target = _ROUTER.select_target(_ROUTER.targets_at(url.path), headers, data)
        simulated = SimulatedCall(
            target.route,
            headers,
            {**dict(parse_qsl(url.query)), **target.params},
            data,
        )
        request = target.wire.parse_request(simulated, FakeService())
        return cls(call, body, request, endpoint, ours, target.wire)

    def answered(self, reply: SimReply, size: int) -> AnswerFinished:
        """Read an answer that arrives in pieces of so many bytes."""
        data = self.bytes_of(reply)
        answer = self.reader()
        for event in self.events(data[start : start + size] for start in range(0, len(data), size)):
            answer.feed(event)
        return answer.finish()

    def bytes_of(self, reply: SimReply) -> bytes:
        """An answer as the provider sends it."""
        return b"".join(frame.data for frame in self._theirs.frames(self.request, reply))

    def reader(self) -> AnswerDecoder:
        """What reads an answer."""
        failures = ErrorMapper(self._endpoint, self.call.model, self._ours.vocabulary)
        return self._ours.answer(self.call, self.body, failures)

    def events(self, pieces: Iterable[bytes]) -> Iterator[str]:
        """The events of an answer that arrives in pieces."""
        if self._ours.framing is StreamFraming.LINES:
            lines = NdjsonDecoder()
            yield from (line for piece in pieces for line in lines.feed(piece))
        else:
            events = SseDecoder()
            yield from (event.data for piece in pieces for event in events.feed(piece))


def history_of(document: Mapping[str, Any]) -> list[str]:
    """The turns in a body, each as the text that is sent."""
    turns = next(document[name] for name in ("messages", "contents", "input") if name in document)
    return [json.dumps(turn) for turn in turns]


def before_history(document: Mapping[str, Any]) -> str:
    """What stands before the turns in the prompt."""
    names = ("model", "system", "systemInstruction", "instructions", "tools", "toolConfig", "tool_choice")
    return json.dumps([document.get(name) for name in names])
