"""The gateways that are compared, each a process in front of the same provider, and their questions."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.dialogue import GrpcSpeaker, HttpSpeaker, Speaker
from bench.instant import SLOWLY
from peripety.api.gateway.v1 import gateway_pb2 as pb
from support.servers.apps import new_id
from support.servers.processes import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


MODEL = "m"
_START_SECONDS = 60


@dataclass(frozen=True)
class Question:
    """Form of the answer: number of tokens, streamed or not, with or without pauses."""

    tokens: int
    stream: bool = False
    slowly: bool = False

    def prompt(self, number: int) -> str:
        """One that no cache has seen."""
        return f"question {number}, to be answered {SLOWLY if self.slowly else 'at once'}"


@dataclass(frozen=True)
class Side:
    """A server that is measured.

    Attributes:
        name: its title.
        pid: its process.
        port: the port on which it listens.
        speaker: makes the client's end of a connection.
        `ask`: the bytes that send a question; its number makes each question unique.
    """

    name: str
    pid: int
    port: int
    speaker: Callable[[], Speaker]
    ask: Callable[[int, Question], bytes]

    @property
    def resident(self) -> int:
        """Bytes of memory that the process holds."""
        status = Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii")
        return int(status.split()[1]) * os.sysconf("SC_PAGE_SIZE")


def direct(pid: int, port: int) -> Side:
    """The provider itself."""
    return Side("direct", pid, port, HttpSpeaker, partial(_over_http, port, "k"))


@contextmanager
def peripety(folder: Path, provider: int) -> Iterator[Side]:
    """This gateway, over gRPC."""
    settings = {
        "MODEL_PROVIDER": "generic",
        "OPENAI_API_BASE": f"http://127.0.0.1:{provider}/v1",
        "MODEL_NAME": MODEL,
        "PERIPETY_LOG_LEVEL": "error",
    }
    with ServerProcess(folder / "peripety", "gateway", settings) as server:
        service = pb.DESCRIPTOR.services_by_name["GatewayService"].full_name
        speaker = partial(GrpcSpeaker, f"/{service}/Generate")
        yield Side(
            "peripety",
            server.process.pid,
            int(server.address.rpartition(":")[2]),
            speaker,
            _over_grpc,
        )


@contextmanager
def litellm(program: Path, folder: Path, provider: int) -> Iterator[Side]:
    """LiteLLM's proxy: one worker, no database, no requests to the internet."""
    key = f"sk-{secrets.token_hex(16)}"  # without one it does not start
    config = folder / "litellm.json"
    parameters = {"model": f"openai/{MODEL}", "api_base": f"http://127.0.0.1:{provider}/v1", "api_key": "k"}
    models = [{"model_name": MODEL, "litellm_params": parameters}]
    config.write_text(json.dumps({"model_list": models}), encoding="utf-8")
    settings = {
        "LITELLM_MASTER_KEY": key,
        "LITELLM_MODE": "PRODUCTION",
        "LITELLM_LOG": "ERROR",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_TELEMETRY": "False",
    }
    command = [program, "--config", config, "--host", "127.0.0.1", "--num_workers", "1", "--port"]
    with _serving([str(part) for part in command], settings, folder) as (pid, port):
        yield Side("litellm", pid, port, HttpSpeaker, partial(_over_http, port, key))


@contextmanager
def bifrost(program: str, folder: Path, provider: int) -> Iterator[Side]:
    """Bifrost, with its provider `openai` turned to ours."""
    home = folder / "bifrost"
    home.mkdir()
    network = {"base_url": f"http://127.0.0.1:{provider}"}
    keys = [{"name": "k", "value": "k", "models": [MODEL], "weight": 1.0}]
    config = {"providers": {"openai": {"keys": keys, "network_config": network}}}
    (home / "config.json").write_text(json.dumps(config), encoding="utf-8")
    command = [program, "-app-dir", str(home), "-host", "127.0.0.1", "-log-level", "error", "-port"]
    with _serving(command, {}, folder) as (pid, port):
        yield Side("bifrost", pid, port, HttpSpeaker, partial(_over_http, port, "k", model=f"openai/{MODEL}"))


def found(program: str) -> str | None:
    """Return the path of an optional program; None if it is not installed."""
    return shutil.which(program)


@contextmanager
def _serving(command: list[str], settings: dict[str, str], folder: Path) -> Iterator[tuple[int, int]]:
    """Start a server on a free port, and wait until it listens; its output goes into a file."""
    port = _free_port()
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **settings}
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen([*command, str(port)], stdout=log, stderr=log, env=environment, cwd=folder)
    try:
        _wait_for(process, port, folder / "log")
        yield process.pid, port
    finally:
        process.terminate()
        process.wait(timeout=30)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _wait_for(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    ends = time.monotonic() + _START_SECONDS
    while time.monotonic() < ends and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError("a server did not start:\n" + log.read_text(encoding="utf-8", errors="replace"))


def _over_http(port: int, key: str, number: int, question: Question, model: str = MODEL) -> bytes:
    message = {"role": "user", "content": question.prompt(number)}
    limits = {"max_tokens": question.tokens, "stream": question.stream}
    body = json.dumps({"model": model, "messages": [message], **limits}).encode()
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def _over_grpc(number: int, question: Question) -> bytes:
    message = pb.ChatMessage(role=pb.CHAT_ROLE_USER, parts=[pb.ContentPart(text=question.prompt(number))])
    return pb.GenerateRequest(
        request_id=new_id(),
        prompt=pb.Prompt(messages=[message]),
        options=pb.GenerationOptions(max_output_tokens=question.tokens),
    ).SerializeToString()
