"""The HTTP application of the edge, and its server.

`serve_edge` runs in the process of the services or in one of its own. Either way it calls them over gRPC, so
the two cannot behave differently.
"""

from __future__ import annotations

import socket
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from peripety.core.config import describe_listen_error, is_loopback, split_address
from peripety.core.http_server import serve_http
from peripety.core.storage.database import Database
from peripety.edge.access import AccessControl
from peripety.edge.approval_routes import ApprovalRoutes
from peripety.edge.calls import ChannelPool, RpcCaller
from peripety.edge.connect_protocol import ConnectRoutes
from peripety.edge.generated_specs import GeneratedSpecs
from peripety.edge.links import LinkRoutes
from peripety.edge.problems import PROBLEM_SCHEMA, PROBLEMS, handle_error, problem_response
from peripety.edge.rpc_routes import RpcRoutes
from peripety.edge.scenario_routes import ScenarioRoutes
from peripety.edge.session_routes import SessionRoutes
from peripety.errors import (
    FailedPreconditionError,
    FieldViolation,
    InvalidArgumentError,
    NotFoundError,
    PeripetyError,
    UnavailableError,
    UnsupportedError,
)
from peripety.rpc.channel import SERVICES, open_channel, read_only_methods
from peripety.version import __version__

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from fastapi.responses import JSONResponse

    from peripety.core.config import Config

_PUBLIC_PATHS = ("/", "/docs", "/openapi.json", "/health")
_STATIC = Path(__file__).parent / "static"
_DOCS_POLICY = (
    "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'; object-src 'none'"
)
"""Swagger UI writes style attributes."""

_NOT_FOUND, _METHOD_NOT_ALLOWED = 404, 405


@asynccontextmanager
async def create_app(config: Config, channels: ChannelPool, database: Database) -> AsyncIterator[FastAPI]:
    """Create the application, and end its background work with the block.

    Args:
        config: the settings.
        channels: channels to the services.
        database: database for generated specifications.
    """
    caller = RpcCaller(channels)
    sessions = SessionRoutes(caller)
    approvals, rpc = ApprovalRoutes(config), RpcRoutes(caller)
    app = FastAPI(title="Peripety", version=__version__, docs_url=None, redoc_url=None)
    for router in (
        ScenarioRoutes(caller, GeneratedSpecs(database)).router,
        sessions.router,
        LinkRoutes(sessions, database).router,
        approvals.router,  # before every other method
        rpc.router,
    ):
        app.include_router(router, responses=PROBLEMS)
    app.add_api_route("/health", _report_health, methods=["GET"], include_in_schema=False)
    app.add_api_route("/", _show_page, methods=["GET"], include_in_schema=False)
    app.add_api_route("/docs", _show_docs, methods=["GET"], include_in_schema=False)
    app.mount("/static/edge", GZipMiddleware(_RevalidatedFiles(directory=_STATIC)))
    app.mount("/static/swagger", StaticFiles(packages=[("fastapi_swagger", "resources")]))
    app.include_router(ConnectRoutes(caller).router)  # the last one: its path has only parameters
    app.add_exception_handler(PeripetyError, handle_error)
    app.add_exception_handler(RequestValidationError, _handle_validation_error)
    app.add_exception_handler(HTTPException, _handle_http_error)
    app.add_exception_handler(ClientDisconnect, _handle_disconnect)
    app.add_exception_handler(Exception, _handle_unexpected_error)
    app.add_middleware(AccessControl, config=config, public_paths=_PUBLIC_PATHS)
    describe_routes = app.openapi

    def describe_all() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema, every = describe_routes(), rpc.describe()
            schema["paths"].update(every["paths"] | approvals.describe(every["schemas"]))
            schema["components"]["schemas"].update(every["schemas"], Problem=PROBLEM_SCHEMA)
        return describe_routes()

    app.openapi = describe_all  # type: ignore[method-assign]  # the documented way to extend it
    try:
        yield app
    finally:
        await sessions.aclose()


@asynccontextmanager
async def serve_edge(config: Config, services_address: str) -> AsyncIterator[str]:
    """Serve the edge until the block ends, and yield its URL.

    Args:
        config: the settings.
        services_address: `host:port` of the services.

    Raises:
        UnavailableError: the address is in use.
        FailedPreconditionError: the address is open to other machines, and no token is configured.
    """
    host, _ = split_address(config.edge_listen)
    if not is_loopback(host) and config.edge_token is None:
        raise FailedPreconditionError(
            f"{config.edge_listen} is open to other machines: set PERIPETY_EDGE_TOKEN, or listen on"
            " 127.0.0.1",
            code="TOKEN_REQUIRED",
        )
    retryable = [name for service in SERVICES for name in read_only_methods(service)]
    listening = _listen(config.edge_listen)
    database = await Database.open(config.database_url.get_secret_value())
    try:
        async with (
            ChannelPool(
                partial(
                    open_channel,
                    services_address,
                    max_message_bytes=config.max_message_bytes,
                    retryable=retryable,
                )
            ) as channels,
            create_app(config, channels, database) as app,
        ):
            # Longer than the idle timeout of clients, or a request meets a connection that closes.
            idle = {"timeout_graceful_shutdown": 1, "timeout_keep_alive": 75}
            async with serve_http(app, listening, ws_max_size=config.max_message_bytes, **idle):
                port = listening.getsockname()[1]
                yield f"http://{f'[{host}]' if ':' in host else host}:{port}/"
    finally:
        listening.close()
        await database.close()


def _listen(address: str) -> socket.socket:
    host, port = split_address(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise UnavailableError(
            f"cannot listen on {address} ({describe_listen_error(error)});"
            " set PERIPETY_EDGE_LISTEN to another",
            code="ADDRESS_UNAVAILABLE",
        ) from None


async def _report_health() -> dict[str, str]:
    return {"status": "ok", "version": __version__}


class _RevalidatedFiles(StaticFiles):
    """Files whose names stay the same in the next version, so a browser has to revalidate them."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        """Return a file, or 304 if the browser has it."""
        response = super().file_response(*args, **kwargs)
        response.headers["cache-control"] = "no-cache"
        return response


async def _show_page() -> FileResponse:
    return FileResponse(_STATIC / "page" / "index.html", headers={"cache-control": "no-cache"})


async def _show_docs() -> FileResponse:
    return FileResponse(_STATIC / "docs.html", headers={"content-security-policy": _DOCS_POLICY})


async def _handle_validation_error(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for this class only
    violations = [
        FieldViolation("body", f"is not JSON: {one['ctx']['error']}")
        if one["type"] == "json_invalid"
        else FieldViolation(".".join(map(str, one["loc"][1:])) or "body", one["msg"])
        for one in error.errors()
    ]
    first = violations[0]
    return problem_response(InvalidArgumentError(f"{first.field}: {first.reason}", violations=violations))


async def _handle_http_error(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for this class only
    kinds: dict[int, PeripetyError] = {
        _NOT_FOUND: NotFoundError(
            "this path does not exist; /docs lists all of them", code="METHOD_NOT_FOUND"
        ),
        _METHOD_NOT_ALLOWED: UnsupportedError("this path does not accept the method; see /docs"),
    }
    public = kinds.get(error.status_code, InvalidArgumentError(str(error.detail)))
    return problem_response(public, error.status_code, error.headers)


async def _handle_disconnect(_request: Request, _error: Exception) -> Response:
    """Return a response that nothing receives: the client disconnected while it sent the request."""
    return Response(status_code=400)


async def _handle_unexpected_error(_request: Request, error: Exception) -> JSONResponse:
    return problem_response(error)
