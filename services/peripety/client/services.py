"""The services by their short names: where their generated code is, and which of their methods only read."""

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
    """Yield the full names of the unary methods that change nothing, so that a client may repeat them.

    The contract names its methods by what they do, and `Get` and `List` never have an effect.
    """
    for module in SERVICES[service]:
        for descriptor in import_module(module).DESCRIPTOR.services_by_name.values():
            for method in descriptor.methods:
                if method.name.startswith(_READING_VERBS) and not method.server_streaming:
                    yield f"{descriptor.full_name}/{method.name}"
