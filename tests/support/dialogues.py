"""Conversations with every provider there is: the scripted LLM answers, and no network carries it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from pydantic import SecretStr

from peripety.config import Config, ProviderName
from peripety.gateway.catalogue import Catalogue
from peripety.gateway.providers.failures import Failures
from peripety.gateway.providers.framing import Framing
from peripety.gateway.providers.ndjson import NdjsonDecoder
from peripety.gateway.providers.registry import WIRES
from peripety.gateway.providers.settings import endpoint_of
from peripety.gateway.providers.sse import SseDecoder
from peripety.simulator.server.routing import Router
from peripety.simulator.wire.base import Call as SimulatedCall
from peripety.simulator.wire.registry import WIRES as THEIRS
from support.wires import FakeService

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from peripety.gateway.providers.base import Call, Finished
    from peripety.gateway.providers.endpoint import Endpoint
    from peripety.gateway.providers.wire import Answer, Body, Wire
    from peripety.simulator.model import Reply, Request

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
    models = Catalogue.load().models(provider.value)
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

    call: Call
    body: Body
    request: Request
    _endpoint: Endpoint
    _ours: Wire
    _theirs: Any

    @classmethod
    def of(cls, provider: ProviderName, call: Call) -> Asked:
        ours = WIRES[provider]
        endpoint = endpoint_of(provider, _CONFIG)
        body = ours.body(call)
        url = urlsplit(endpoint.base_url + ours.path(call))
        headers = {name.lower(): value for name, value in ours.headers(call, KEY).items()}
        data = json.dumps(body.document).encode()
        target = _ROUTER.choose(_ROUTER.at(url.path), headers, data)
        simulated = SimulatedCall(
            target.route, headers, {**dict(parse_qsl(url.query)), **target.params}, data
        )
        request = target.wire.request(simulated, FakeService())
        return cls(call, body, request, endpoint, ours, target.wire)

    def answered(self, reply: Reply, size: int) -> Finished:
        """Read an answer that arrives in pieces of so many bytes."""
        data = self.bytes_of(reply)
        answer = self.reader()
        for event in self.events(data[start : start + size] for start in range(0, len(data), size)):
            answer.feed(event)
        return answer.finish()

    def bytes_of(self, reply: Reply) -> bytes:
        """An answer as the provider sends it."""
        return b"".join(frame.data for frame in self._theirs.frames(self.request, reply))

    def reader(self) -> Answer:
        """What reads an answer."""
        failures = Failures(self._endpoint, self.call.model, self._ours.vocabulary)
        return self._ours.answer(self.call, self.body, failures)

    def events(self, pieces: Iterable[bytes]) -> Iterator[str]:
        """The events of an answer that arrives in pieces."""
        if self._ours.framing is Framing.LINES:
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
