"""gRPC handlers of the ScenarioService."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceServicer
from peripety.certification.options import validate_certificate_options, validate_options
from peripety.core.call_context import now_micros
from peripety.core.concurrency import closing
from peripety.core.idempotency.store import PendingResponse
from peripety.core.idempotency.stream import ResponseRecorder
from peripety.core.runs.call_runs import CallMethod, CallRuns, CallRunState
from peripety.errors import require_field
from peripety.gateway.pb.resources import request_key_from_proto
from peripety.rpc.messages import call_run_state_from_proto, call_run_to_proto
from peripety.scenario.action_tools import require_supported, scenario_tools
from peripety.scenario.batch.pipeline import validate_stream
from peripety.scenario.pb import requests as pb_requests
from peripety.scenario.pb import responses
from peripety.scenario.pb.responses import inspection_to_proto
from peripety.scenario.validation import validate_order

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.core.idempotency.store import IdempotencyStore
    from peripety.core.runs.call_runs import CallRunStore
    from peripety.scenario.admission import ScenarioRegistrar
    from peripety.scenario.amendment.amender import Amender
    from peripety.scenario.balance.balancer import Balancer
    from peripety.scenario.batch import Document
    from peripety.scenario.batch.validator import FairThreadPool
    from peripety.scenario.certificate.certifier import Certifier, CertifyEvent
    from peripety.scenario.generation.draft_cache import SpecGenerator
    from peripety.scenario.registry import ProgramCache, ScenarioRegistry
    from peripety.scenario.rule_graph.activity import Inspector
    from peripety.scenario.types import AmendEvent, AmendmentCompleted, RegistrationEvent


_MAX_ITEMS = 1_000
_MAX_NAME_FILTER = 200
_HOLDER = re.compile(r"[A-Za-z0-9._-]{1,64}")
_SOURCE = "is required: send spec, or the scenario_id of a stored scenario"
_LAST = frozenset({"compiled", "certificate", "balanced", "rejected"})


class ScenarioServicer(ScenarioServiceServicer):
    """ScenarioService over gRPC; undefined methods return UNIMPLEMENTED.

    Args:
        generator: writes specifications.
        registrar: registers them.
        amender: amends registered scenarios.
        runs: stores the runs of the two calls that a model may take long for.
        configured: fingerprint of the default provider configuration.
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
        generator: SpecGenerator,
        registrar: ScenarioRegistrar,
        amender: Amender,
        runs: CallRunStore,
        configured: str,
        balancer: Balancer,
        certifier: Certifier,
        inspector: Inspector,
        registry: ScenarioRegistry,
        programs: ProgramCache,
        requests: IdempotencyStore,
        threads: FairThreadPool,
    ) -> None:
        self._threads = threads
        self._registrar = registrar
        self._balancer = balancer
        self._certifier = certifier
        self._inspector = inspector
        self._registry = registry
        self._programs = programs
        self._recorder = ResponseRecorder(requests, _LAST)
        methods = (_generation_method(generator), _amendment_method(amender))
        self._runs = CallRuns(runs, methods, configured, now_micros)

    async def aclose(self) -> None:
        """Release all runs of this process; another process can continue them."""
        await self._runs.aclose()

    def GenerateScenario(  # noqa: N802 - the contract's name
        self,
        request: pb.GenerateScenarioRequest,
        _context: Any,
    ) -> AsyncIterator[pb.GenerateScenarioResponse]:
        """Write a specification from a description."""
        return self._runs.stream(request)

    def CompileScenario(  # noqa: N802 - the contract's name
        self,
        request: pb.CompileScenarioRequest,
        _context: Any,
    ) -> AsyncIterator[pb.CompileScenarioResponse]:
        """Validate, dry-run, repair and store a specification."""
        compiled = self._register_source(request)
        return self._recorder.stream(
            request,
            compiled,
            responses.registration_event_to_proto,
            pb.CompileScenarioResponse,
        )

    def AmendScenario(  # noqa: N802 - the contract's name
        self,
        request: pb.AmendScenarioRequest,
        _context: Any,
    ) -> AsyncIterator[pb.AmendScenarioResponse]:
        """Amend a stored scenario by a text."""
        return self._runs.stream(request)

    async def ResumeScenarioRun(  # noqa: N802 - the contract's name
        self,
        request: pb.ResumeScenarioRunRequest,
        _context: Any,
    ) -> AsyncIterator[pb.ResumeScenarioRunResponse]:
        """Stream the events of a run after a given sequence number."""
        require_field(request.run_id, ".run_id", "is required")
        resumed = self._runs.resume_stream(
            request.run_id,
            request.after_sequence,
            recorded_only=request.recorded_only,
        )
        async with closing(resumed) as events:
            async for event in events:
                response = pb.ResumeScenarioRunResponse(sequence=event.sequence)
                is_generation = isinstance(event, pb.GenerateScenarioResponse)
                (response.generation if is_generation else response.amendment).CopyFrom(event)
                yield response

    async def GetScenarioRun(  # noqa: N802 - the contract's name
        self,
        request: pb.GetScenarioRunRequest,
        _context: Any,
    ) -> pb.GetScenarioRunResponse:
        """Return a run."""
        require_field(request.run_id, ".run_id", "is required")
        return pb.GetScenarioRunResponse(run=call_run_to_proto(await self._runs.get(request.run_id)))

    async def ListScenarioRuns(  # noqa: N802 - the contract's name
        self,
        request: pb.ListScenarioRunsRequest,
        _context: Any,
    ) -> pb.ListScenarioRunsResponse:
        """List the runs of the caller, newest first."""
        state = call_run_state_from_proto(request.state)
        page = await self._runs.list(state, request.page_size, request.page_token)
        return pb.ListScenarioRunsResponse(
            runs=map(call_run_to_proto, page.items),
            next_page_token=page.next_page_token,
        )

    async def CancelScenarioRun(  # noqa: N802 - the contract's name
        self,
        request: pb.CancelScenarioRunRequest,
        _context: Any,
    ) -> pb.CancelScenarioRunResponse:
        """Cancel a run."""
        require_field(request.run_id, ".run_id", "is required")
        run = await self._runs.cancel(request.run_id, request_key_from_proto(request))
        return pb.CancelScenarioRunResponse(run=call_run_to_proto(run))

    async def DeleteScenarioRun(  # noqa: N802 - the contract's name
        self,
        request: pb.DeleteScenarioRunRequest,
        _context: Any,
    ) -> pb.DeleteScenarioRunResponse:
        """Delete a run with its events."""
        require_field(request.run_id, ".run_id", "is required")
        await self._runs.delete(request.run_id, request_key_from_proto(request))
        return pb.DeleteScenarioRunResponse()

    def BalanceScenario(  # noqa: N802 - the contract's name
        self,
        request: pb.BalanceScenarioRequest,
        _context: Any,
    ) -> AsyncIterator[pb.BalanceScenarioResponse]:
        """Move the numbers of a specification until the fail rate of a persona is in the target."""
        balanced = self._balancer.balance(pb_requests.balance_order_from_proto(request))
        return self._recorder.stream(
            request,
            balanced,
            responses.balance_event_to_proto,
            pb.BalanceScenarioResponse,
        )

    async def ValidateScenarios(  # noqa: N802 - the contract's name
        self,
        requests: AsyncIterator[pb.ValidateScenariosRequest],
        _context: Any,
    ) -> AsyncIterator[pb.ValidateScenariosResponse]:
        """Validate many specifications, in any order."""
        first = await anext(aiter(requests), None)
        if first is None:
            return
        options = pb_requests.batch_options_from_proto(first.options)
        validate_options(options.dry_run)
        validate_certificate_options(options.certificate, ".certificate")
        sequence = 0
        async with closing(
            validate_stream(_iter_documents(first, requests), options, self._threads),
        ) as found:
            async for some in found:
                for response in pb_requests.verdicts_to_proto(some):
                    response.sequence = sequence = sequence + 1
                    yield response

    async def GetScenario(  # noqa: N802 - the contract's name
        self,
        request: pb.GetScenarioRequest,
        _context: Any,
    ) -> pb.GetScenarioResponse:
        """Return a stored scenario."""
        require_field(request.scenario_id, ".scenario_id", "is required")
        record = await self._registry.get(request.scenario_id, request.spec_hash or None)
        return pb.GetScenarioResponse(scenario=responses.scenario_to_proto(record))

    async def ListScenarios(  # noqa: N802 - the contract's name
        self,
        request: pb.ListScenariosRequest,
        _context: Any,
    ) -> pb.ListScenariosResponse:
        """List stored scenarios."""
        fits = len(request.name_contains) <= _MAX_NAME_FILTER
        require_field(fits, ".name_contains", f"has more than {_MAX_NAME_FILTER} characters")
        page = await self._registry.list_scenarios(
            request.page_size,
            request.page_token,
            request.name_contains,
        )
        return pb.ListScenariosResponse(
            scenarios=responses.summaries_to_proto(page),
            next_page_token=page.next_page_token,
        )

    async def ListScenarioVersions(  # noqa: N802 - the contract's name
        self,
        request: pb.ListScenarioVersionsRequest,
        _context: Any,
    ) -> pb.ListScenarioVersionsResponse:
        """List the versions of a stored scenario."""
        require_field(request.scenario_id, ".scenario_id", "is required")
        page = await self._registry.list_versions(request.scenario_id, request.page_size, request.page_token)
        return pb.ListScenarioVersionsResponse(
            versions=responses.summaries_to_proto(page),
            next_page_token=page.next_page_token,
        )

    async def RetainScenario(  # noqa: N802 - the contract's name
        self,
        request: pb.RetainScenarioRequest,
        _context: Any,
    ) -> pb.RetainScenarioResponse:
        """Add a holder of a stored scenario."""
        _require_holder(request)
        change = partial(self._registry.retain, request.scenario_id, request.holder)
        await self._recorder.execute_once(request, change)
        return pb.RetainScenarioResponse(holders=await self._registry.get_holders(request.scenario_id))

    async def ReleaseScenario(  # noqa: N802 - the contract's name
        self,
        request: pb.ReleaseScenarioRequest,
        _context: Any,
    ) -> pb.ReleaseScenarioResponse:
        """Remove a holder of a stored scenario."""
        _require_holder(request)
        change = partial(self._registry.release, request.scenario_id, request.holder)
        await self._recorder.execute_once(request, change)
        return pb.ReleaseScenarioResponse(holders=await self._registry.get_holders(request.scenario_id))

    async def DeleteScenario(  # noqa: N802 - the contract's name
        self,
        request: pb.DeleteScenarioRequest,
        _context: Any,
    ) -> pb.DeleteScenarioResponse:
        """Delete a stored scenario."""
        require_field(request.scenario_id, ".scenario_id", "is required")
        await self._recorder.execute_once(request, partial(self._registry.delete, request.scenario_id))
        return pb.DeleteScenarioResponse()

    async def InspectScenario(  # noqa: N802 - the contract's name
        self,
        request: pb.InspectScenarioRequest,
        _context: Any,
    ) -> pb.InspectScenarioResponse:
        """Return the rule graph of a specification."""
        options = pb_requests.inspection_options_from_proto(request)
        source = request.WhichOneof("source")
        require_field(source, ".source", _SOURCE)
        if source == "spec":
            return inspection_to_proto(await self._inspector.inspect(request.spec, options))
        require_field(request.scenario_id, ".scenario_id", "is empty; name a stored scenario")
        return inspection_to_proto(await self._inspector.inspect_stored(request.scenario_id, options))

    async def GetScenarioTools(  # noqa: N802 - the contract's name
        self,
        request: pb.GetScenarioToolsRequest,
        _context: Any,
    ) -> pb.GetScenarioToolsResponse:
        """Return the actions of a stored scenario as tools."""
        require_field(request.scenario_id, ".scenario_id", "is required")
        provider = pb_requests.provider_from_proto(request.provider)
        scenario = await self._registry.get_scenario(request.scenario_id, request.spec_hash or None)
        program = await self._programs.load(scenario.spec_hash, scenario.document)
        offered = scenario_tools(program.spec, on_the_wire=provider is not None)
        if provider is not None:
            require_supported(offered, provider)
        return responses.tools_to_proto(offered, program.spec_hash)

    def CertifyScenario(  # noqa: N802 - the contract's name
        self,
        request: pb.CertifyScenarioRequest,
        _context: Any,
    ) -> AsyncIterator[pb.CertifyScenarioResponse]:
        """Measure the fairness of a specification."""
        certified = self._certify_source(request)
        return self._recorder.stream(
            request,
            certified,
            pb_requests.certify_event_to_proto,
            pb.CertifyScenarioResponse,
        )

    async def GetCertificate(  # noqa: N802 - the contract's name
        self,
        request: pb.GetCertificateRequest,
        _context: Any,
    ) -> pb.GetCertificateResponse:
        """Return the certificate of a stored scenario."""
        require_field(request.certificate_hash, ".certificate_hash", "is required")
        kept = await self._registry.get_certificate(request.certificate_hash)
        return pb.GetCertificateResponse(certificate=pb_requests.certificate_to_proto(kept))

    async def CheckCertificate(  # noqa: N802 - the contract's name
        self,
        request: pb.CheckCertificateRequest,
        _context: Any,
    ) -> AsyncIterator[pb.CheckCertificateResponse]:
        """Recompute a certificate and compare."""
        require_field(request.document, ".document", "is required")
        sequence = 0
        async with closing(self._certifier.verify(request.document, request.spec)) as compared:
            async for event in compared:
                response = pb_requests.check_event_to_proto(event)
                response.sequence = sequence = sequence + 1
                yield response

    def _certify_source(self, request: pb.CertifyScenarioRequest) -> AsyncIterator[CertifyEvent]:
        options = pb_requests.certificate_options_from_proto(request.options)
        source = request.WhichOneof("source")
        require_field(source, ".source", _SOURCE)
        if source == "spec":
            return self._certifier.certify(request.spec, options)
        require_field(request.scenario_id, ".scenario_id", "is empty; name a stored scenario")
        return self._certifier.certify_stored(request.scenario_id, options)

    def _register_source(self, request: pb.CompileScenarioRequest) -> AsyncIterator[RegistrationEvent]:
        options = pb_requests.dry_run_options_from_proto(request.dry_run)
        auto_repair = request.auto_repair if request.HasField("auto_repair") else True
        source = request.WhichOneof("source")
        require_field(source, ".source", _SOURCE)
        if source == "spec":
            version_of = request.version_of or None
            return self._registrar.register(
                request.spec,
                options,
                auto_repair=auto_repair,
                version_of=version_of,
            )
        require_field(request.scenario_id, ".scenario_id", "is empty; name a stored scenario")
        require_field(
            not request.version_of,
            ".version_of",
            "goes with spec; a stored scenario stays what it is",
        )
        return self._registrar.register_again(request.scenario_id, options, auto_repair=auto_repair)


def _require_holder(request: pb.RetainScenarioRequest | pb.ReleaseScenarioRequest) -> None:
    require_field(request.scenario_id, ".scenario_id", "is required")
    is_name = _HOLDER.fullmatch(request.holder)
    require_field(is_name, ".holder", "is required: 1 to 64 letters (A to Z), digits, dots, `_` and `-`")


def _generation_method(generator: SpecGenerator) -> CallMethod:
    async def check(request: pb.GenerateScenarioRequest) -> None:
        validate_order(pb_requests.order_from_proto(request))

    return CallMethod(
        pb.GenerateScenarioRequest,
        pb.GenerateScenarioResponse,
        check,
        lambda request: generator.generate(pb_requests.order_from_proto(request)),
        responses.generation_event_to_proto,
        lambda request: request.description,
        {"completed": CallRunState.COMPLETED, "rejected": CallRunState.REJECTED},
    )


def _amendment_method(amender: Amender) -> CallMethod:
    async def check(request: pb.AmendScenarioRequest) -> None:
        await amender.check(pb_requests.amendment_from_proto(request))

    return CallMethod(
        pb.AmendScenarioRequest,
        pb.AmendScenarioResponse,
        check,
        lambda request: amender.amend(pb_requests.amendment_from_proto(request)),
        _amend_response,
        lambda request: request.instruction,
        {"rejected": CallRunState.REJECTED},
    )


def _amend_response(
    event: AmendEvent | PendingResponse[AmendmentCompleted],
) -> pb.AmendScenarioResponse | PendingResponse[pb.AmendScenarioResponse]:
    return (
        event.map(responses.amendment_event_to_proto)
        if isinstance(event, PendingResponse)
        else responses.amendment_event_to_proto(event)
    )


async def _iter_documents(
    first: pb.ValidateScenariosRequest,
    others: AsyncIterator[pb.ValidateScenariosRequest],
) -> AsyncIterator[list[Document[str]]]:
    """Yield the specifications of each message."""
    yield _documents_in_message(first)
    async for request in others:
        yield _documents_in_message(request)


def _documents_in_message(request: pb.ValidateScenariosRequest) -> list[Document[str]]:
    require_field(len(request.items) <= _MAX_ITEMS, ".items", f"has more than {_MAX_ITEMS} items; send less")
    return pb_requests.documents_from_proto(request.items)
