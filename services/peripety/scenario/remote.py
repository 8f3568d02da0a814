"""Scenarios of another process, through the same protocol as the registry of this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceStub
from peripety.errors import NotFoundError
from peripety.scenario.pb import responses

if TYPE_CHECKING:
    import grpc.aio

    from peripety.scenario.types import Scenario


class RemoteScenarioSource:
    """Client of a ScenarioService that implements `ScenarioSource`.

    Args:
        channel: the channel to the service.
    """

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub = ScenarioServiceStub(channel)

    async def get_scenario(self, scenario_id: str, spec_hash: str | None = None) -> Scenario:
        """Return a stored scenario, in its latest version by default."""
        request = pb.GetScenarioRequest(scenario_id=scenario_id, spec_hash=spec_hash or "")
        return responses.scenario_from_proto((await self._stub.GetScenario(request)).scenario)

    async def get_certificate_document(self, scenario_id: str, spec_hash: str) -> bytes | None:
        """Return the document of the latest certificate of a version; None without one."""
        try:
            scenario = pb.GetScenarioRequest(scenario_id=scenario_id, spec_hash=spec_hash)
            name = (await self._stub.GetScenario(scenario)).scenario.certificate_hash
            if not name:
                return None
            kept = await self._stub.GetCertificate(pb.GetCertificateRequest(certificate_hash=name))
        except NotFoundError:
            return None
        return kept.certificate.document
