"""Approvals of an enforcement point: `POST /rpc/ApprovalService/{method}`.

An enforcement point is another server, and only the user who started it has its token. So the edge has none:
each request brings the address and the token in headers, which a page of another site cannot set. The edge
uses them for this one call, and neither stores nor logs the token.

The address is that of this machine or a configured one. Otherwise a page could make the edge connect to any
server in its network.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from peripety.core.config import is_loopback, split_address
from peripety.edge.calls import approval_methods
from peripety.edge.rpc_routes import describe_method, read_message
from peripety.errors import (
    DeadlineError,
    FailedPreconditionError,
    FieldViolation,
    InvalidArgumentError,
    NotFoundError,
    UnavailableError,
    UnsupportedError,
)
from peripety.rpc.channel import open_channel
from peripety.rpc.proto_json import to_json

if TYPE_CHECKING:
    from peripety.core.config import Config

ADDRESS_HEADER = "x-peripety-enforcement-point"
"""Header with the `host:port` of the enforcement point."""
TOKEN_HEADER = "x-peripety-enforcement-token"  # noqa: S105 - the name of a header
"""Header with the token of the enforcement point."""

_TOKEN = re.compile(r"[!-~]{1,256}")
_SECONDS = 10.0


class ApprovalRoutes:
    """Handler of the route.

    Args:
        config: the settings.
    """

    def __init__(self, config: Config) -> None:
        host, _ = split_address(config.edge_listen)
        self._allowed = frozenset(split_address(one.lower()) for one in config.edge_enforcement_points)
        # With other names, a proxy in front of the edge lets users of other machines in.
        self._allows_loopback = is_loopback(host) and not config.edge_hosts
        self._methods = approval_methods()
        self.router = APIRouter()
        self.router.add_api_route(
            "/rpc/ApprovalService/{method}", self.call, methods=["POST"], include_in_schema=False
        )

    async def call(self, method: str, request: Request) -> JSONResponse:
        """Call a method of the enforcement point that the headers name."""
        found = self._methods.get(method)
        if found is None:
            raise NotFoundError(
                f"ApprovalService/{method[:100]} is not a method over HTTP; /docs lists all of them",
                code="METHOD_NOT_FOUND",
            )
        address = self._require_address(request.headers.get(ADDRESS_HEADER, ""))
        token = request.headers.get(TOKEN_HEADER, "")
        if not _TOKEN.fullmatch(token):
            raise _invalid_header(TOKEN_HEADER, "must be the token of the enforcement point, as in its file")
        message = await read_message(found, request)
        async with open_channel(address) as channel:
            start = channel.unary_unary(
                found.path, found.request.SerializeToString, found.response.FromString
            )
            try:
                response = await start(
                    message, timeout=_SECONDS, metadata=(("authorization", f"Bearer {token}"),)
                )
            except (UnavailableError, DeadlineError, UnsupportedError):
                raise UnavailableError(
                    f"no enforcement point answers at {address}; start `peripety policy proxy`, and use the"
                    " address and the token of its file",
                    code="ENFORCEMENT_POINT_UNAVAILABLE",
                ) from None
        return JSONResponse(to_json(response))

    def _require_address(self, address: str) -> str:
        """Return the address to connect to."""
        try:
            host, port = split_address(address)
        except ValueError as error:
            raise _invalid_header(ADDRESS_HEADER, str(error)) from None
        host = host.lower()
        is_own = self._allows_loopback and is_loopback(host)
        if not is_own and self._allowed.isdisjoint({(host, port), (host, 0)}):
            raise FailedPreconditionError(
                f"{address[:100]} is not an address for approvals: use that of an enforcement point on this"
                " machine, or add it to PERIPETY_EDGE_ENFORCEMENT_POINTS",
                code="ADDRESS_REFUSED",
            )
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def describe(self, schemas: dict[str, Any]) -> dict[str, Any]:
        """Return the OpenAPI paths of all methods, and add the schemas that they refer to."""
        parameters = [
            {"in": "header", "name": name, "required": True, "schema": {"type": "string"}}
            for name in (ADDRESS_HEADER, TOKEN_HEADER)
        ]
        return {
            f"/rpc/ApprovalService/{name}": {
                "post": describe_method(method, schemas) | {"parameters": parameters}
            }
            for name, method in self._methods.items()
        }


def _invalid_header(name: str, reason: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"header {name} {reason}", violations=[FieldViolation(name, reason)])
