"""Every provider against llmsim, the gateway service over a channel, a local model server."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from pydantic import SecretStr

from peripety.core.call_context import Clock
from peripety.core.config import Config, ProviderLimits, ProviderName
from peripety.gateway.calls.executor import CallExecutor
from peripety.gateway.local_gateway import LocalModelGateway
from peripety.gateway.models.catalog import ModelCatalog
from peripety.gateway.providers.error_mapping import ErrorMapper
from peripety.gateway.providers.registry import WIRES, ProviderRegistry, endpoint_of
from peripety.gateway.providers.stream_framing import NdjsonDecoder, SseDecoder, StreamFraming
from peripety.gateway.setup import register_service
from peripety.llmsim.server.routing import WIRES as THEIRS
from peripety.llmsim.server.routing import Router
from peripety.llmsim.wire.base import HttpCall as SimulatedCall
from peripety.rpc.channel import open_channel
from peripety.server.app import serve_registered
from support.llmsim.simulator import FakeService
from support.repo.repository import ROOT
from support.servers.apps import config_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
    from pathlib import Path

    import grpc.aio

    from peripety.gateway.providers.provider import AnswerFinished, Endpoint, ProviderCall
    from peripety.gateway.providers.wire_protocol import AnswerDecoder, RequestBody, WireProtocol
    from peripety.llmsim.types import SimReply, SimRequest


DIALOGUE_KEY = SecretStr("sk-canary")
_SERVER = "http://127.0.0.1:1"
_CONFIG = Config(
    openai_api_base=f"{_SERVER}/v1",
    openai_api_key=DIALOGUE_KEY,
    anthropic_api_key=DIALOGUE_KEY,
    gemini_api_key=DIALOGUE_KEY,
    deepseek_api_key=DIALOGUE_KEY,
    azure_api_base=_SERVER,
    azure_api_key=DIALOGUE_KEY,
    scripted_api_base=_SERVER,
)
_ROUTER = Router(THEIRS)


HTTP_PROVIDERS = tuple(WIRES)
"""The providers that are called over HTTP."""


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
    """A call as the scripted LLM received it; creation raises `ApiError` if the provider would refuse it.

    Attributes:
        call: the call.
        body: its request body.
        request: the request that the scripted LLM read from the body.
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
        headers = {name.lower(): value for name, value in ours.headers(call, DIALOGUE_KEY).items()}
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
        """Return the decoder of an answer."""
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
    """Return the part of the prompt before the turns."""
    names = ("model", "system", "systemInstruction", "instructions", "tools", "toolConfig", "tool_choice")
    return json.dumps([document.get(name) for name in names])


@contextmanager
def local_server(cache: Path) -> Iterator[tuple[list[str], str]]:
    """Start the server; yield the lines that it prints before it listens, and its URL."""
    command = [sys.executable, str(ROOT / "examples" / "local_model_server.py")]
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        lines: list[str] = []
        try:
            for line in process.stdout:
                if line.startswith("listening on "):
                    yield lines, line.removeprefix("listening on ").strip()
                    break
                lines.append(line)
        finally:
            process.terminate()
            assert process.wait(timeout=30) == 0


KEY = "sk-canary-1234567890"


@dataclass(frozen=True)
class Spoken:
    """Parameters of a provider under test against the scripted LLM.

    Attributes:
        name: the provider.
        settings: the settings are `<settings>_api_base` and `<settings>_api_key`.
        model: a model that calls tools, and reasons of its own accord.
        path: where its API begins, behind the URL of the scripted LLM.
        shows_reasoning: True if it reports the model's reasoning by default.
        tells_refusals: True if it reports that the model declined, not only the words of the refusal.
        tells_filters: True if it reports that a filter ended the answer.
        numbers_chunks: True if its chunks have numbers, and its texts come a second time as a whole.
    """

    name: ProviderName
    settings: str
    model: str
    path: str = ""
    shows_reasoning: bool = False
    tells_refusals: bool = True
    tells_filters: bool = True
    numbers_chunks: bool = False

    def __str__(self) -> str:
        return self.name.value


PROVIDERS = (
    Spoken(ProviderName.ANTHROPIC, "anthropic", "claude-opus-5-5"),
    Spoken(ProviderName.OPENAI, "openai", "gpt-5", "/v1"),
    Spoken(ProviderName.OPENAI_RESPONSES, "openai", "gpt-5", "/v1", numbers_chunks=True),
    Spoken(ProviderName.GENERIC, "openai", "test-model", "/v1"),
    Spoken(ProviderName.GEMINI, "gemini", "gemini-2.5-pro", shows_reasoning=True),
    Spoken(
        ProviderName.OLLAMA,
        "ollama",
        "llama3",
        shows_reasoning=True,
        tells_refusals=False,
        tells_filters=False,
    ),
    Spoken(ProviderName.DEEPSEEK, "deepseek", "deepseek-v4-pro", shows_reasoning=True, tells_refusals=False),
    Spoken(ProviderName.AZURE, "azure", "gpt-5"),
    Spoken(ProviderName.SCRIPTED, "scripted", "scripted"),
)


def config_of(spoken: Spoken, url: str, **settings: Any) -> Config:
    """Return the settings of a provider at the scripted LLM with this URL."""
    at_provider: dict[str, Any] = {f"{spoken.settings}_api_base": f"{url}{spoken.path}"}
    if f"{spoken.settings}_api_key" in Config.model_fields:
        at_provider[f"{spoken.settings}_api_key"] = SecretStr(KEY)
    chosen = {"model_provider": spoken.name, "model_name": spoken.model}
    unlimited = {spoken.name.value: ProviderLimits()}
    return Config(**{**at_provider, **chosen, "limits": unlimited, **settings})


async def at_once(_seconds: float) -> None:
    """Wait without waiting, so that no test waits for a retry."""
    await asyncio.sleep(0)


@asynccontextmanager
async def gateway_of(spoken: Spoken, url: str, **settings: Any) -> AsyncIterator[LocalModelGateway]:
    """Open a gateway to a provider at the scripted LLM that retries without a pause."""
    config = config_of(spoken, url, **settings)
    providers = ProviderRegistry(config)
    try:
        yield LocalModelGateway(providers, CallExecutor(config, Clock(sleep=at_once)))
    finally:
        await providers.aclose()


@asynccontextmanager
async def channel_to(
    tmp_path: Path,
    spoken: Spoken,
    url: str,
    **settings: Any,
) -> AsyncIterator[grpc.aio.Channel]:
    """Serve a gateway to a provider at this URL, and open a channel to it."""
    own = config_for(tmp_path).model_dump(exclude_unset=True)
    config = config_of(spoken, url, **own, **settings)
    async with serve_registered(config, [register_service]) as app, open_channel(app.address) as channel:
        yield channel
