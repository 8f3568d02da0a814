"""A real model behind the generic provider; runs where the extra `llm` is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from peripety.gateway.calling import Caller
from peripety.gateway.conversations import Conversation
from peripety.gateway.gateway import LocalModelGateway
from peripety.gateway.model import ResponseSchema
from peripety.gateway.providers.registry import Providers
from support.apps import config_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.skipif(find_spec("xllamacpp") is None, reason="the extra 'llm' is not installed"),
    pytest.mark.timeout(300),
]

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 24},
        "amount": {"type": "integer", "minimum": 1, "maximum": 9},
    },
    "required": ["name", "amount"],
    "additionalProperties": False,
}


@contextmanager
def local_server(cache: Path) -> Iterator[tuple[list[str], str]]:
    """What the server prints before it listens, and its URL."""
    command = [sys.executable, "-m", "peripety.gateway.local_server"]
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


async def test_a_real_model_answers_to_a_schema_and_caches_the_conversation(tmp_path: Path) -> None:
    with local_server(tmp_path) as (notice, url):
        assert "Gemma Terms of Use" in "".join(notice)
        settings: dict[str, Any] = {"model_provider": "generic", "openai_api_base": url, "model_name": "any"}
        config = config_for(tmp_path, **settings)
        providers = Providers(config)
        gateway = LocalModelGateway(providers, Caller(config))
        conversation = Conversation(gateway, "Name a thing and an amount of it.")
        schema = ResponseSchema("thing", SCHEMA)
        first = await conversation.send("first", schema=schema, max_output_tokens=200, seed=1)
        second = await conversation.send("second", schema=schema, max_output_tokens=200, seed=1)
        await providers.aclose()
    assert set(first.value or {}) == set(second.value or {}) == {"name", "amount"}
    assert second.usage.cache_read_tokens > first.usage.cache_read_tokens
    assert len(conversation.turns) == 2
