"""Services by short name: their generated modules and their read-only methods."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SERVICES", "reads"]

SERVICES = {
    "gateway": ("peripety.api.gateway.v1.gateway_pb2", "peripety.api.agent.v1.agent_pb2"),
    "scenarios": ("peripety.api.scenario.v1.scenario_pb2",),
    "sessions": ("peripety.api.session.v1.session_pb2",),
    "policies": ("peripety.api.policy.v1.policy_pb2",),
    "testgen": ("peripety.api.testgen.v1.testgen_pb2",),
}

_READING_VERBS = ("Get", "List")


def reads(service: str) -> Iterator[str]:
    """Yield the full names of the read-only unary methods, which a client may retry.

    By convention of the contract, `Get` and `List` methods never have side effects.
    """
    for module in SERVICES[service]:
        for descriptor in import_module(module).DESCRIPTOR.services_by_name.values():
            for method in descriptor.methods:
                if method.name.startswith(_READING_VERBS) and not method.server_streaming:
                    yield f"{descriptor.full_name}/{method.name}"
