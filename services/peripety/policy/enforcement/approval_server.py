"""Approval server: the waiting calls over HTTP on loopback, for users who have the token of the process."""

from __future__ import annotations

import secrets
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from peripety.core.http_server import serve_http
from peripety.errors import PeripetyError

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator

    from starlette.requests import Request

    from peripety.policy.enforcement.approvals import ApprovalQueue, PendingApproval


class _ApprovalRoutes:
    """Handlers of the routes.

    Args:
        approvals: the waiting calls.
        token: the token that each request must have.
    """

    def __init__(self, approvals: ApprovalQueue, token: str) -> None:
        self._approvals = approvals
        self._expected = f"Bearer {token}"

    def create_app(self) -> Starlette:
        """Create the application."""
        return Starlette(
            routes=[
                Route("/approvals", self._list, methods=["GET"]),
                Route("/approvals/{approval_id}", self._answer, methods=["POST"]),
            ],
        )

    async def _list(self, request: Request) -> JSONResponse:
        if not self._is_permitted(request):
            return JSONResponse({"detail": "the token is wrong"}, 401)
        return JSONResponse([_approval_to_json(one) for one in self._approvals.pending])

    async def _answer(self, request: Request) -> JSONResponse:
        if not self._is_permitted(request):
            return JSONResponse({"detail": "the token is wrong"}, 401)
        try:
            body = await request.json()
            is_approved, hash_of_call = body["approved"], body["call_hash"]
        except (ValueError, KeyError, TypeError):
            return JSONResponse({"detail": "the body must have approved and call_hash"}, 400)
        if not isinstance(is_approved, bool) or not isinstance(hash_of_call, str):
            return JSONResponse({"detail": "approved must be true or false, call_hash a string"}, 400)
        try:
            self._approvals.answer(request.path_params["approval_id"], hash_of_call, is_approved=is_approved)
        except PeripetyError as error:
            return JSONResponse({"detail": error.message, "code": error.code}, 409)
        return JSONResponse({"approved": is_approved})

    def _is_permitted(self, request: Request) -> bool:
        # A page in a browser sends its origin, and has no business here.
        given = request.headers.get("authorization", "")
        return "origin" not in request.headers and secrets.compare_digest(
            given.encode(), self._expected.encode()
        )


def _approval_to_json(approval: PendingApproval) -> dict[str, Any]:
    request = approval.request
    return {
        "approval_id": approval.approval_id,
        "server_name": request.server_name,
        "tool_name": request.tool_name,
        "arguments": request.arguments,
        "roles": [*request.roles],
        "call_hash": approval.call_hash,
        "rule_id": approval.rule_id,
        "reasons": [*approval.reasons],
        "since": approval.since,
        "until": approval.until,
        "redacted_paths": [*approval.redacted_paths],
    }


@asynccontextmanager
async def serve_approvals(
    approvals: ApprovalQueue, token: str, listening: socket.socket
) -> AsyncIterator[None]:
    """Serve the waiting calls over HTTP until the block ends.

    Args:
        approvals: the waiting calls.
        token: the token that each request must have.
        listening: the socket; it is closed at the end.
    """
    async with serve_http(_ApprovalRoutes(approvals, token).create_app(), listening):
        yield
