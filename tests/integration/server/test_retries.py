"""Calls that a client retries by itself, and calls that it never retries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from peripety.errors import UnavailableError
from peripety.rpc.channel import open_channel
from peripety.server.app import serve_registered
from support.servers.apps import SERVICE, Caller, config_for, service, unary

if TYPE_CHECKING:
    from pathlib import Path

    from google.protobuf.wrappers_pb2 import StringValue


class _Flaky:
    """Unavailable for the first calls."""

    def __init__(self, failures: int, retry_after: float | None = None) -> None:
        self.calls = 0
        self._failures = failures
        self._retry_after = retry_after

    async def reply(self, request: StringValue, _call: object) -> StringValue:
        self.calls += 1
        if self.calls <= self._failures:
            raise UnavailableError("not yet", retry_after=self._retry_after)
        return request


async def test_a_method_that_only_reads_is_asked_again_when_the_server_is_away(tmp_path: Path) -> None:
    flaky = _Flaky(failures=2, retry_after=0.01)
    async with (
        serve_registered(config_for(tmp_path), [service(Get=unary(flaky.reply))]) as app,
        open_channel(app.address, retryable=[f"{SERVICE}/Get"]) as channel,
    ):
        assert (await Caller(channel).unary("Get", "a")).value == "a"
    assert flaky.calls == 3


async def test_a_method_with_effects_is_asked_once(tmp_path: Path) -> None:
    flaky = _Flaky(failures=1)
    async with (
        serve_registered(config_for(tmp_path), [service(Create=unary(flaky.reply))]) as app,
        open_channel(app.address, retryable=[f"{SERVICE}/Get"]) as channel,
    ):
        with pytest.raises(UnavailableError, match="not yet"):
            await Caller(channel).unary("Create", "a")
    assert flaky.calls == 1
