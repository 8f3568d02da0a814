"""gRPC handlers of the ScenarioService."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from peripety.answering.log import Pending
from peripety.answering.recording import Recorder
from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceServicer
from peripety.gateway.streams import following
from peripety.requests import require
from peripety.scenarios.batch.streaming import validated
from peripety.scenarios.checks import check_certificate_options, check_options
from peripety.scenarios.messages import asked, certificates, events, stored, verdicts
from peripety.scenarios.messages.inspection import inspection_response
from peripety.scenarios.tools import require_taken, scenario_tools

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.answering.log import RequestLog
    from peripety.scenarios.amending.amender import Amender
    from peripety.scenarios.amending.model import Amended, AmendEvent
    from peripety.scenarios.balancing.balancing import Balancer
    from peripety.scenarios.batch import Document
    from peripety.scenarios.batch.threads import Threads
    from peripety.scenarios.certificates.certifier import Certifier, CertifyEvent
    from peripety.scenarios.compile import Compiler
    from peripety.scenarios.inspecting.inspector import Inspector
    from peripety.scenarios.model import CompileEvent
    from peripety.scenarios.programs import Programs
    from peripety.scenarios.registry import ScenarioRegistry
    from peripety.scenarios.writing.drafts import Writes

__all__ = ["ScenarioServicer"]

_MAX_ITEMS = 1_000
_SOURCE = "is required: send spec, or the scenario_id of a stored scenario"
_LAST = frozenset({"completed", "compiled", "certificate", "balanced", "amended", "rejected"})


class ScenarioServicer(ScenarioServiceServicer):
    """ScenarioService over gRPC; undefined methods return UNIMPLEMENTED.

    Args:
        generator: writes specifications.
        compiler: registers them.
        amender: amends registered scenarios.
        balancer: balances specifications.
        certifier: certifies scenarios.
        inspector: builds rule graphs.
        registry: stores scenarios.
        programs: cache of compiled programs.
        requests: idempotency store of responses.
        threads: thread pool of batches.
    """

    def __init__(
        self,
        generator: Writes,
        compiler: Compiler,
        amender: Amender,
        balancer: Balancer,
        certifier: Certifier,
        inspector: Inspector,
        registry: ScenarioRegistry,
        programs: Programs,
        requests: RequestLog,
        threads: Threads,
    ) -> None:
        self._threads = threads
        self._generator = generator
        self._compiler = compiler
        self._amender = amender
        self._balancer = balancer
        self._certifier = certifier
        self._inspector = inspector
        self._registry = registry
        self._programs = programs
        self._record = Recorder(requests, _LAST)

    def GenerateScenario(  # noqa: N802 - the contract's name
        self, request: pb.GenerateScenarioRequest, _context: Any
    ) -> AsyncIterator[pb.GenerateScenarioResponse]:
        """Write a specification from a description."""
        written = self._generator.generate(asked.order(request))
        return self._record.answers(request, written, events.generation_response, pb.GenerateScenarioResponse)

    def CompileScenario(  # noqa: N802 - the contract's name
        self, request: pb.CompileScenarioRequest, _context: Any
    ) -> AsyncIterator[pb.CompileScenarioResponse]:
        """Validate, dry-run, repair and store a specification."""
        compiled = self._compiling(request)
        return self._record.answers(request, compiled, events.compile_response, pb.CompileScenarioResponse)

    def AmendScenario(  # noqa: N802 - the contract's name
        self, request: pb.AmendScenarioRequest, _context: Any
    ) -> AsyncIterator[pb.AmendScenarioResponse]:
        """Amend a stored scenario by a text."""
        amended = self._amender.amend(asked.amendment(request))
        return self._record.answers(request, amended, _amend_response, pb.AmendScenarioResponse)

    def BalanceScenario(  # noqa: N802 - the contract's name
        self, request: pb.BalanceScenarioRequest, _context: Any
    ) -> AsyncIterator[pb.BalanceScenarioResponse]:
        """Move the numbers of a specification until the fail rate of a persona is in the target."""
        balanced = self._balancer.balance(asked.balance_order(request))
        return self._record.answers(request, balanced, events.balance_response, pb.BalanceScenarioResponse)

    async def ValidateScenarios(  # noqa: N802 - the contract's name
        self, requests: AsyncIterator[pb.ValidateScenariosRequest], _context: Any
    ) -> AsyncIterator[pb.ValidateScenariosResponse]:
        """Validate many specifications, in any order."""
        first = await anext(aiter(requests), None)
        if first is None:
            return
        options = asked.batch_options(first.options)
        check_options(options.dry_run)
        check_certificate_options(options.certificate, ".certificate")
        sequence = 0
        async with following(validated(_documents(first, requests), options, self._threads)) as found:
            async for some in found:
                for response in verdicts.responses(some):
                    response.sequence = sequence = sequence + 1
                    yield response

    async def GetScenario(  # noqa: N802 - the contract's name
        self, request: pb.GetScenarioRequest, _context: Any
    ) -> pb.GetScenarioResponse:
        """Return a stored scenario."""
        require(request.scenario_id, ".scenario_id", "is required")
        record = await self._registry.get(request.scenario_id, request.spec_hash or None)
        return pb.GetScenarioResponse(scenario=stored.scenario(record))

    async def ListScenarios(  # noqa: N802 - the contract's name
        self, request: pb.ListScenariosRequest, _context: Any
    ) -> pb.ListScenariosResponse:
        """List stored scenarios."""
        page = await self._registry.scenarios(request.page_size, request.page_token)
        return pb.ListScenariosResponse(
            scenarios=stored.summaries(page), next_page_token=page.next_page_token
        )

    async def ListScenarioVersions(  # noqa: N802 - the contract's name
        self, request: pb.ListScenarioVersionsRequest, _context: Any
    ) -> pb.ListScenarioVersionsResponse:
        """List the versions of a stored scenario."""
        require(request.scenario_id, ".scenario_id", "is required")
        page = await self._registry.versions(request.scenario_id, request.page_size, request.page_token)
        return pb.ListScenarioVersionsResponse(
            versions=stored.summaries(page), next_page_token=page.next_page_token
        )

    async def DeleteScenario(  # noqa: N802 - the contract's name
        self, request: pb.DeleteScenarioRequest, _context: Any
    ) -> pb.DeleteScenarioResponse:
        """Delete a stored scenario."""
        require(request.scenario_id, ".scenario_id", "is required")
        await self._record.change_once(request, partial(self._registry.delete, request.scenario_id))
        return pb.DeleteScenarioResponse()

    async def InspectScenario(  # noqa: N802 - the contract's name
        self, request: pb.InspectScenarioRequest, _context: Any
    ) -> pb.InspectScenarioResponse:
        """Return the rule graph of a specification."""
        options = asked.inspection_options(request)
        source = request.WhichOneof("source")
        require(source, ".source", _SOURCE)
        if source == "spec":
            return inspection_response(await self._inspector.inspect(request.spec, options))
        require(request.scenario_id, ".scenario_id", "is empty; name a stored scenario")
        return inspection_response(await self._inspector.inspect_stored(request.scenario_id, options))

    async def GetScenarioTools(  # noqa: N802 - the contract's name
        self, request: pb.GetScenarioToolsRequest, _context: Any
    ) -> pb.GetScenarioToolsResponse:
        """Return the actions of a stored scenario as tools."""
        require(request.scenario_id, ".scenario_id", "is required")
        provider = asked.provider(request.provider)
        scenario = await self._registry.compiled(request.scenario_id, request.spec_hash or None)
        program = await self._programs.of(scenario.spec_hash, scenario.document)
        offered = scenario_tools(program.spec, on_the_wire=provider is not None)
        if provider is not None:
            require_taken(offered, provider)
        return stored.tools(offered, program.spec_hash)

    def CertifyScenario(  # noqa: N802 - the contract's name
        self, request: pb.CertifyScenarioRequest, _context: Any
    ) -> AsyncIterator[pb.CertifyScenarioResponse]:
        """Measure the fairness of a specification."""
        certified = self._certifying(request)
        return self._record.answers(
            request, certified, certificates.certify_response, pb.CertifyScenarioResponse
        )

    async def GetCertificate(  # noqa: N802 - the contract's name
        self, request: pb.GetCertificateRequest, _context: Any
    ) -> pb.GetCertificateResponse:
        """Return the certificate of a stored scenario."""
        require(request.certificate_hash, ".certificate_hash", "is required")
        kept = await self._registry.certificate(request.certificate_hash)
        return pb.GetCertificateResponse(certificate=certificates.certificate(kept))

    async def CheckCertificate(  # noqa: N802 - the contract's name
        self, request: pb.CheckCertificateRequest, _context: Any
    ) -> AsyncIterator[pb.CheckCertificateResponse]:
        """Recompute a certificate and compare."""
        require(request.document, ".document", "is required")
        sequence = 0
        async with following(self._certifier.check(request.document, request.spec)) as compared:
            async for event in compared:
                response = certificates.check_response(event)
                response.sequence = sequence = sequence + 1
                yield response

    def _certifying(self, request: pb.CertifyScenarioRequest) -> AsyncIterator[CertifyEvent]:
        options = certificates.options_asked(request.options)
        source = request.WhichOneof("source")
        require(source, ".source", _SOURCE)
        if source == "spec":
            return self._certifier.certify(request.spec, options)
        require(request.scenario_id, ".scenario_id", "is empty; name a stored scenario")
        return self._certifier.certify_stored(request.scenario_id, options)

    def _compiling(self, request: pb.CompileScenarioRequest) -> AsyncIterator[CompileEvent]:
        options = asked.dry_run_options(request.dry_run)
        auto_repair = request.auto_repair if request.HasField("auto_repair") else True
        source = request.WhichOneof("source")
        require(source, ".source", _SOURCE)
        if source == "spec":
            version_of = request.version_of or None
            return self._compiler.compile(
                request.spec, options, auto_repair=auto_repair, version_of=version_of
            )
        require(request.scenario_id, ".scenario_id", "is empty; name a stored scenario")
        require(not request.version_of, ".version_of", "goes with spec; a stored scenario stays what it is")
        return self._compiler.recompile(request.scenario_id, options, auto_repair=auto_repair)


def _amend_response(
    event: AmendEvent | Pending[Amended],
) -> pb.AmendScenarioResponse | Pending[pb.AmendScenarioResponse]:
    return event.told(events.amend_response) if isinstance(event, Pending) else events.amend_response(event)


async def _documents(
    first: pb.ValidateScenariosRequest, others: AsyncIterator[pb.ValidateScenariosRequest]
) -> AsyncIterator[list[Document[str]]]:
    """Yield the specifications of each message."""
    yield _documents_in(first)
    async for request in others:
        yield _documents_in(request)


def _documents_in(request: pb.ValidateScenariosRequest) -> list[Document[str]]:
    require(len(request.items) <= _MAX_ITEMS, ".items", f"has more than {_MAX_ITEMS} items; send less")
    return verdicts.documents(request.items)
