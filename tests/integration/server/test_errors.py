"""Failures over a real channel: what reaches the caller, and what never leaves the server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import pytest
from google.protobuf.wrappers_pb2 import StringValue
from grpc_status import rpc_status

from peripety.errors import (
    FieldViolation,
    InternalError,
    InvalidArgumentError,
    PeripetyError,
    ResourceExhaustedError,
    UnavailableError,
    UnsupportedError,
)
from peripety.rpc.channel import open_channel
from peripety.rpc.status import DETAILS_KEY, ERRORS, MAX_DETAILS_BYTES, from_rpc_error
from peripety.server.interceptor import METADATA_BYTES
from support.repo.repository import ALL_ERRORS, example
from support.servers.apps import (
    Caller,
    both,
    config_for,
    plain_channel,
    service,
    serving,
    stream,
    texts,
    unary,
    upload,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path


CANARY = "sk-canary-7391"


def _failing_with(error: BaseException) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
    """One method of each kind that fails with the error."""

    async def fail(_request: object, _call: object) -> StringValue:
        raise error

    async def fail_after_one(_request: object, _call: object) -> AsyncIterator[StringValue]:
        yield StringValue(value="one")
        raise error

    # A client of grpc.aio that still writes when the call ends can report INTERNAL, so these read first.
    async def fail_after_all(requests: AsyncIterator[StringValue], call: object) -> StringValue:
        async for _ in requests:
            pass
        return await fail(requests, call)

    async def fail_after_all_and_one(
        requests: AsyncIterator[StringValue],
        _call: object,
    ) -> AsyncIterator[StringValue]:
        async for _ in requests:
            pass
        yield StringValue(value="one")
        raise error

    return {
        "Unary": unary(fail),
        "Stream": stream(fail_after_one),
        "Upload": upload(fail_after_all),
        "Both": both(fail_after_all_and_one),
    }


async def _last_message(call: Any) -> None:
    async for _ in call:
        pass


KINDS: dict[str, Callable[[Caller], Awaitable[Any]]] = {
    "unary": lambda caller: caller.unary("Unary"),
    "stream": lambda caller: _last_message(caller.stream("Stream")),
    "upload": lambda caller: caller.upload("Upload", texts("a")),
    "both": lambda caller: _last_message(caller.both("Both", texts("a"))),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("error_type", ALL_ERRORS)
async def test_every_error_reaches_the_caller_as_itself(
    tmp_path: Path,
    error_type: type[PeripetyError],
    kind: str,
) -> None:
    sent = example(error_type)
    async with serving(config_for(tmp_path), service(**_failing_with(sent))) as (_, caller):
        with pytest.raises(PeripetyError) as caught:
            await KINDS[kind](caller)
    received = caught.value
    assert received.kind is sent.kind
    if not isinstance(sent, InternalError):
        assert (received.message, received.code) == (sent.message, sent.code)
        assert (received.details, received.violations) == (sent.details, sent.violations)
        assert received.retry_after == sent.retry_after


@pytest.mark.parametrize("kind", KINDS)
async def test_an_unexpected_exception_shows_a_request_id_and_nothing_else(tmp_path: Path, kind: str) -> None:
    methods = _failing_with(ValueError(CANARY))
    async with (
        serving(config_for(tmp_path), service(**methods)) as (app, _),
        plain_channel(app.address) as channel,
    ):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await KINDS[kind](Caller(channel))
    error = caught.value
    assert error.code() is grpc.StatusCode.INTERNAL
    request_id = dict(error.trailing_metadata())["x-request-id"]
    assert request_id in (error.details() or "")
    assert from_rpc_error(error).details == {"request_id": request_id}
    everything = f"{error.details()} {error.initial_metadata()} {error.trailing_metadata()}"
    assert not [word for word in (CANARY, "ValueError", "Traceback", ".py") if word in everything]


async def test_an_internal_error_of_ours_keeps_its_text_inside_too(tmp_path: Path) -> None:
    async with serving(config_for(tmp_path), service(**_failing_with(InternalError(CANARY)))) as (_, caller):
        with pytest.raises(InternalError) as caught:
            await caller.unary("Unary")
    assert CANARY not in caught.value.message


async def test_a_status_is_standard_for_clients_that_know_nothing_of_us(tmp_path: Path) -> None:
    methods = _failing_with(example(InvalidArgumentError))
    async with (
        serving(config_for(tmp_path), service(**methods)) as (app, _),
        plain_channel(app.address) as channel,
    ):
        call = Caller(channel).unary("Unary")
        assert await call.code() is grpc.StatusCode.INVALID_ARGUMENT
        status = await rpc_status.aio.from_call(call)
    assert status is not None
    assert [detail.type_url.rpartition(".")[2] for detail in status.details] == [
        "RetryInfo",
        "BadRequest",
        "ErrorInfo",
    ]


@pytest.mark.parametrize("text", ["must be a", "muß " * 1000, "語" * 5000, "\x00\n\r\x1b[1m", "\ud800"])
async def test_a_thousand_violations_are_cut_to_fit_and_counted(tmp_path: Path, text: str) -> None:
    error = InvalidArgumentError(
        text * 3,
        violations=[FieldViolation(f"field[{i}]", text) for i in range(1000)],
        details={text: text},
    )
    async with (
        serving(config_for(tmp_path), service(**_failing_with(error))) as (app, _),
        plain_channel(app.address) as channel,
    ):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await Caller(channel).unary("Unary")
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert len(dict(caught.value.trailing_metadata())[DETAILS_KEY]) <= MAX_DETAILS_BYTES
    received = from_rpc_error(caught.value)
    assert received.violations
    assert len(received.violations) + int(received.details["violations_omitted"]) == 1000


@pytest.mark.parametrize(
    "garbage",
    [b"\xff", b"\x0a\xff\xff\xff\xff\xff\xff\xff", b"\x0a\x02\xff\xfe", b"{}" * 99],
)
async def test_bytes_that_are_no_message_are_an_invalid_argument(tmp_path: Path, garbage: bytes) -> None:
    methods = _failing_with(AssertionError("the handler was called"))
    async with serving(config_for(tmp_path), service(**methods)) as (_, caller):
        with pytest.raises(InvalidArgumentError, match="cannot be decoded") as caught:
            await caller.raw("Unary", garbage)
    assert caught.value.code == "UNDECODABLE_REQUEST"


async def test_garbage_in_the_middle_of_a_stream_ends_it_with_an_invalid_argument(tmp_path: Path) -> None:
    async def echo(requests: AsyncIterator[StringValue], _call: object) -> AsyncIterator[StringValue]:
        async for request in requests:
            yield request

    async with serving(config_for(tmp_path), service(Echo=both(echo))) as (_, caller):
        call = caller.channel.stream_stream("/peripety.test.v1.TestService/Echo")()
        await call.write(StringValue(value="a").SerializeToString())
        assert StringValue.FromString(await call.read()).value == "a"
        await call.write(b"\xff")
        with pytest.raises(InvalidArgumentError, match="cannot be decoded"):
            await call.read()


async def test_a_request_that_is_too_large_says_so(tmp_path: Path) -> None:
    config = config_for(tmp_path, max_message_bytes=64 * 1024)
    methods = _failing_with(AssertionError("the handler was called"))
    async with serving(config, service(**methods)) as (_, caller):
        with pytest.raises(ResourceExhaustedError, match=r"larger than max \(70000 vs\. 65536\)"):
            await caller.raw("Unary", b"x" * 70_000)


@pytest.mark.parametrize("kind", ["Unary", "Stream"])
async def test_a_reply_that_is_too_large_says_so_and_what_to_do(tmp_path: Path, kind: str) -> None:
    async def reply(_request: object, _call: object) -> StringValue:
        return StringValue(value="x" * 70_000)

    async def replies(_request: object, _call: object) -> AsyncIterator[StringValue]:
        yield StringValue(value="x" * 70_000)

    config = config_for(tmp_path, max_message_bytes=64 * 1024)
    async with serving(config, service(Unary=unary(reply), Stream=stream(replies))) as (_, caller):
        with pytest.raises(ResourceExhaustedError, match="request less") as caught:
            await (caller.unary("Unary") if kind == "Unary" else _last_message(caller.stream("Stream")))
    assert caught.value.code == "REPLY_TOO_LARGE"


async def test_a_reply_of_the_wrong_type_is_our_defect(tmp_path: Path) -> None:
    async def reply(_request: object, _call: object) -> object:
        return CANARY

    async with serving(config_for(tmp_path), service(Unary=unary(reply))) as (_, caller):
        with pytest.raises(InternalError) as caught:
            await caller.unary("Unary")
    assert CANARY not in caught.value.message


async def test_a_method_nobody_serves_is_unsupported(tmp_path: Path) -> None:
    async with serving(config_for(tmp_path), service()) as (_, caller):
        with pytest.raises(UnsupportedError, match="does not implement this call"):
            await caller.unary("Missing")


async def test_a_server_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    async with serving(config_for(tmp_path), service()) as (app, _):
        address = app.address
    async with open_channel(address) as channel:
        with pytest.raises(UnavailableError, match="check that it runs at this address"):
            await Caller(channel).unary("Unary")


async def test_calls_above_the_limit_are_refused_with_a_time_to_wait(tmp_path: Path) -> None:
    started, finish = asyncio.Event(), asyncio.Event()

    async def hold(_request: object, _call: object) -> StringValue:
        started.set()
        await finish.wait()
        return StringValue()

    async with serving(config_for(tmp_path, max_concurrent_calls=1), service(Hold=unary(hold))) as (
        _,
        caller,
    ):
        held = asyncio.ensure_future(caller.unary("Hold"))
        await started.wait()
        with pytest.raises(ResourceExhaustedError) as caught:
            await caller.unary("Hold")
        finish.set()
        await held
        await caller.unary("Hold")
    assert caught.value.code == "TOO_MANY_CALLS"
    assert caught.value.retry_after == 1.0


@pytest.mark.parametrize("code", [c for c in grpc.StatusCode if c is not grpc.StatusCode.OK])
async def test_any_status_of_any_server_becomes_an_error_of_the_tree(
    tmp_path: Path,
    code: grpc.StatusCode,
) -> None:
    async def abort(_request: object, call: grpc.aio.ServicerContext[Any, Any]) -> StringValue:
        await call.abort(code, "said by the server", ((DETAILS_KEY, b"\xff not a status"),))

    async with serving(config_for(tmp_path), service(Unary=unary(abort))) as (_, caller):
        with pytest.raises(PeripetyError, match="said by the server") as caught:
            await caller.unary("Unary")
    assert type(caught.value) is ERRORS.get(code, InternalError)


@pytest.mark.parametrize(("size", "attempts"), [(12_000, 20), (20_000, 2)])
async def test_metadata_has_one_limit_not_a_random_one(tmp_path: Path, size: int, attempts: int) -> None:
    async def echo(request: StringValue, _call: object) -> StringValue:
        return request

    async with serving(config_for(tmp_path), service(Echo=unary(echo))) as (_, caller):
        for _ in range(attempts):
            call = caller.unary("Echo", metadata=(("x-long", "x" * size),))
            code = grpc.StatusCode.OK if size < METADATA_BYTES else grpc.StatusCode.RESOURCE_EXHAUSTED
            assert await call.code() is code
