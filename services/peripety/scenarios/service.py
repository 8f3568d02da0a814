"""ScenarioService: protobuf in, domain, protobuf out."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, TypeVar

from peripety.api.common.v1 import common_pb2 as common
from peripety.api.common.v1 import engine_pb2 as engine
from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceServicer
from peripety.client.errors import ERRORS
from peripety.errors import (
    PeripetyError,
    Severity,
)
from peripety.gateway.streams import following
from peripety.scenarios.checking import inspect
from peripety.scenarios.checks import check_options, require, require_uuid, unsupported
from peripety.scenarios.model import (
    Compiled,
    Completed,
    Draft,
    DryRunOptions,
    FoundWrong,
    GenerationLimits,
    GenerationOrder,
    Level,
    NotCompiled,
    NotGenerated,
    NumbersMoved,
    Progress,
    Rewritten,
)
from peripety.scenarios.rates import interval

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from google.protobuf.message import Message

    from peripety.errors import Finding
    from peripety.scenarios.compile import Compiler
    from peripety.scenarios.generate import Generator
    from peripety.scenarios.model import (
        CompileEvent,
        GenerationEvent,
        NumberEdit,
        RuleEdit,
        ScenarioPage,
        ScenarioRecord,
        Work,
    )
    from peripety.scenarios.registry import ScenarioRegistry
    from peripety.scenarios.requests import RequestLog
    from peripety.sim import DryRunReport, Persona

__all__ = ["ScenarioServicer"]

_MAX_ANSWERS = 4
_MAX_RUNS = 4_096
_MAX_ITEMS = 1_000
_MAX_ITEM_ID_BYTES = 256
_MAX_FINDINGS = 50
_LAST = frozenset({"completed", "compiled", "rejected"})
_PERSONAS: dict[int, Persona] = {
    engine.PERSONA_UNSPECIFIED: "random",
    engine.PERSONA_RANDOM: "random",
    engine.PERSONA_IDLE: "idle",
}
_LEVELS = {
    pb.VALIDATION_LEVEL_UNSPECIFIED: Level.STATIC,
    pb.VALIDATION_LEVEL_SCHEMA: Level.SCHEMA,
    pb.VALIDATION_LEVEL_STATIC: Level.STATIC,
    pb.VALIDATION_LEVEL_DRY_RUN: Level.DRY_RUN,
}

_Event = TypeVar("_Event")
_Response = TypeVar("_Response", pb.GenerateScenarioResponse, pb.CompileScenarioResponse)


class ScenarioServicer(ScenarioServiceServicer):
    """Serves scenarios over gRPC; what it does not define is answered with UNIMPLEMENTED.

    Args:
        generator: writes specifications.
        compiler: accepts them.
        registry: keeps those that were accepted.
        requests: keeps what requests were answered with.
    """

    def __init__(
        self, generator: Generator, compiler: Compiler, registry: ScenarioRegistry, requests: RequestLog
    ) -> None:
        self._generator = generator
        self._compiler = compiler
        self._registry = registry
        self._requests = requests

    async def GenerateScenario(  # noqa: N802 - the contract's name
        self, request: pb.GenerateScenarioRequest, _context: Any
    ) -> AsyncIterator[pb.GenerateScenarioResponse]:
        """Write a specification from a description."""
        events = self._generator.generate(_order(request))
        async with following(
            self._recorded(request, events, _generation_response, pb.GenerateScenarioResponse)
        ) as responses:
            async for response in responses:
                yield response

    async def CompileScenario(  # noqa: N802 - the contract's name
        self, request: pb.CompileScenarioRequest, _context: Any
    ) -> AsyncIterator[pb.CompileScenarioResponse]:
        """Check, dry-run, repair and store a specification."""
        events = self._compiling(request)
        async with following(
            self._recorded(request, events, _compile_response, pb.CompileScenarioResponse)
        ) as responses:
            async for response in responses:
                yield response

    async def ValidateScenarios(  # noqa: N802 - the contract's name
        self, requests: AsyncIterator[pb.ValidateScenariosRequest], _context: Any
    ) -> AsyncIterator[pb.ValidateScenariosResponse]:
        """Check many specifications, a message of verdicts for each message of items."""
        level, options, sequence = Level.STATIC, DryRunOptions(), 0
        async for request in requests:
            if sequence == 0:
                level, options = _level(request.options.level), _dry_run_options(request.options.dry_run)
                check_options(options)
            require(
                len(request.items) <= _MAX_ITEMS, ".items", f"has more than {_MAX_ITEMS} items; send less"
            )
            sequence += 1
            verdicts = [await _verdict(item, level, options) for item in request.items]
            yield pb.ValidateScenariosResponse(sequence=sequence, verdicts=verdicts)

    async def GetScenario(  # noqa: N802 - the contract's name
        self, request: pb.GetScenarioRequest, _context: Any
    ) -> pb.GetScenarioResponse:
        """Read a stored scenario."""
        require(request.scenario_id, ".scenario_id", "is required")
        record = await self._registry.get(request.scenario_id, request.spec_hash or None)
        return pb.GetScenarioResponse(scenario=_scenario(record))

    async def ListScenarios(  # noqa: N802 - the contract's name
        self, request: pb.ListScenariosRequest, _context: Any
    ) -> pb.ListScenariosResponse:
        """List stored scenarios."""
        page = await self._registry.scenarios(request.page_size, request.page_token)
        return pb.ListScenariosResponse(scenarios=_summaries(page), next_page_token=page.next_page_token)

    async def ListScenarioVersions(  # noqa: N802 - the contract's name
        self, request: pb.ListScenarioVersionsRequest, _context: Any
    ) -> pb.ListScenarioVersionsResponse:
        """List the versions of a stored scenario."""
        require(request.scenario_id, ".scenario_id", "is required")
        page = await self._registry.versions(request.scenario_id, request.page_size, request.page_token)
        return pb.ListScenarioVersionsResponse(
            versions=_summaries(page), next_page_token=page.next_page_token
        )

    async def DeleteScenario(  # noqa: N802 - the contract's name
        self, request: pb.DeleteScenarioRequest, _context: Any
    ) -> pb.DeleteScenarioResponse:
        """Forget a stored scenario."""
        require_uuid(request.request_id)
        require(request.scenario_id, ".scenario_id", "is required")
        work = self._deleting(request.scenario_id)
        async for _ in self._requests.once(request.request_id, _fingerprint(request), work):
            pass
        return pb.DeleteScenarioResponse()

    def _compiling(self, request: pb.CompileScenarioRequest) -> AsyncIterator[CompileEvent]:
        options = _dry_run_options(request.dry_run)
        auto_repair = request.auto_repair if request.HasField("auto_repair") else True
        source = request.WhichOneof("source")
        require(source, ".source", "is required: send spec, or the scenario_id of a stored scenario")
        if source == "spec":
            version_of = request.version_of or None
            return self._compiler.compile(
                request.spec, options, auto_repair=auto_repair, version_of=version_of
            )
        require(request.scenario_id, ".scenario_id", "is empty; name a stored scenario")
        require(not request.version_of, ".version_of", "goes with spec; a stored scenario stays what it is")
        return self._compiler.recompile(request.scenario_id, options, auto_repair=auto_repair)

    async def _recorded(
        self,
        request: pb.GenerateScenarioRequest | pb.CompileScenarioRequest,
        events: AsyncIterator[_Event],
        respond: Callable[[_Event], _Response],
        kind: type[_Response],
    ) -> AsyncIterator[_Response]:
        """The responses to a request, or the same ones again when it was answered before."""
        require_uuid(request.request_id)
        require(request.after_sequence >= 0, ".after_sequence", "must not be negative")
        answer = self._requests.once(
            request.request_id,
            _fingerprint(request),
            _encoded(events, respond),
            after=request.after_sequence,
        )
        async with following(answer) as responses:
            async for data in responses:
                yield kind.FromString(data)

    async def _deleting(self, scenario_id: str) -> AsyncIterator[tuple[bytes, bool]]:
        await self._registry.delete(scenario_id)
        yield b"", True


async def _encoded(
    events: AsyncIterator[_Event], respond: Callable[[_Event], _Response]
) -> AsyncIterator[tuple[bytes, bool]]:
    """Events as numbered responses in bytes, and whether each is the last."""
    sequence = 0
    async with following(events):
        async for event in events:
            response = respond(event)
            response.sequence = sequence = sequence + 1
            yield response.SerializeToString(), response.WhichOneof("event") in _LAST


def _fingerprint(request: Message) -> str:
    """What makes a request the same: all of it but where the caller wants to go on."""
    same = type(request)()
    same.CopyFrom(request)
    if "after_sequence" in same.DESCRIPTOR.fields_by_name:
        same.ClearField("after_sequence")
    return hashlib.sha256(
        same.DESCRIPTOR.name.encode() + same.SerializeToString(deterministic=True)
    ).hexdigest()


def _order(request: pb.GenerateScenarioRequest) -> GenerationOrder:
    return GenerationOrder(
        description=request.description,
        seed=request.seed if request.HasField("seed") else None,
        model=request.model or None,
        level=_level(request.level),
        limits=_limits(request),
    )


def _limits(request: pb.GenerateScenarioRequest) -> GenerationLimits:
    budget = request.budget
    if budget.HasField("max_cost"):
        raise unsupported(".budget.max_cost", "a cap on money")
    answers = request.max_attempts or _MAX_ANSWERS
    return GenerationLimits(
        answers=min(answers, budget.max_calls or answers),
        tokens=budget.max_tokens or None,
        seconds=budget.max_time.ToMilliseconds() / 1000 or None,
    )


def _level(level: pb.ValidationLevel.ValueType) -> Level:
    if level == pb.VALIDATION_LEVEL_CERTIFICATE:
        raise unsupported(".level", "VALIDATION_LEVEL_CERTIFICATE")
    require(level in _LEVELS, ".level", "is no ValidationLevel")
    return _LEVELS[level]


def _dry_run_options(options: pb.DryRunOptions) -> DryRunOptions:
    persona = options.persona
    if persona not in _PERSONAS and persona in engine.Persona.values():
        raise unsupported(".dry_run.persona", engine.Persona.Name(persona))
    require(persona in _PERSONAS, ".dry_run.persona", "is no Persona")
    return DryRunOptions(
        persona=_PERSONAS[persona],
        seed=options.seed if options.HasField("seed") else None,
        max_runs=options.max_runs or _MAX_RUNS,
        horizon=options.horizon or None,
    )


async def _verdict(item: pb.SpecItem, level: Level, options: DryRunOptions) -> pb.SpecVerdict:
    """The verdict on one item; what goes wrong with it is no matter of the others."""
    try:
        size = len(item.item_id.encode())
        require(0 < size <= _MAX_ITEM_ID_BYTES, ".item_id", f"must have 1 to {_MAX_ITEM_ID_BYTES} bytes")
        found = await inspect(item.spec, level, options)
    except PeripetyError as error:
        return pb.SpecVerdict(item_id=item.item_id, error=_item_error(error))
    return pb.SpecVerdict(
        item_id=item.item_id,
        accepted=found.accepted,
        findings=_findings(found.findings),
        spec_hash=found.spec_hash,
        dry_run=_report(found.dry_run) if found.dry_run else None,
    )


def _item_error(error: PeripetyError) -> common.ItemError:
    status = next(status for status, kind in ERRORS.items() if isinstance(error, kind))
    return common.ItemError(
        code=status.value[0],
        reason=error.code,
        message=error.message,
        metadata=error.details,
        violations=[common.FieldViolation(field=v.field, description=v.reason) for v in error.violations],
    )


def _generation_response(event: GenerationEvent) -> pb.GenerateScenarioResponse:
    response = pb.GenerateScenarioResponse
    match event:
        case Progress():
            return response(progress=_progress(event))
        case Draft(document, attempt, work):
            usage = None if work is None else _usage(work)
            return response(draft=response.Draft(spec=document, attempt=attempt, usage=usage))
        case FoundWrong(findings):
            return response(findings=_findings(findings))
        case Rewritten(document, attempt, edits):
            changed = [_rule_edit(edit) for edit in edits]
            return response(repaired=response.Repaired(spec=document, attempt=attempt, edits=changed))
        case Completed():
            return response(completed=_completed(event))
        case NotGenerated(findings, attempts, work):
            refused = response.Rejected(findings=_findings(findings), attempts=attempts, usage=_usage(work))
            return response(rejected=refused)


def _completed(event: Completed) -> pb.GenerateScenarioResponse.Completed:
    return pb.GenerateScenarioResponse.Completed(
        spec=event.document,
        findings=_findings(event.findings).findings,
        attempts=event.attempts,
        usage=_usage(event.work),
        authored_without_model=event.without_model,
        model=event.model,
    )


def _compile_response(event: CompileEvent) -> pb.CompileScenarioResponse:
    response = pb.CompileScenarioResponse
    match event:
        case Progress():
            return response(progress=_progress(event))
        case NumbersMoved(edits, before):
            return response(repaired=response.Repaired(edits=_number_edits(edits), before=_report(before)))
        case Compiled(record):
            return response(compiled=_scenario(record))
        case NotCompiled(findings, dry_run):
            report = _report(dry_run) if dry_run else None
            return response(rejected=response.Rejected(findings=_findings(findings), dry_run=report))


def _progress(event: Progress) -> pb.Progress:
    return pb.Progress(
        stage=pb.Stage.Value(f"STAGE_{event.stage.name}"),
        message=event.message,
        fraction=event.fraction,
        usage=_usage(event.work),
    )


def _usage(work: Work) -> common.ModelUsage:
    tokens = common.TokenUsage(
        input_tokens=work.usage.input_tokens,
        output_tokens=work.usage.output_tokens,
        cache_read_tokens=work.usage.cache_read_tokens,
        cache_write_tokens=work.usage.cache_write_tokens,
    )
    return common.ModelUsage(calls=work.calls, tokens=tokens)


def _findings(findings: Sequence[Finding]) -> pb.Findings:
    worst_first = sorted(findings, key=lambda finding: finding.severity is not Severity.ERROR)
    told = [
        common.Finding(
            code=finding.code,
            path=finding.path,
            message=finding.message,
            severity=common.Severity.Value(f"SEVERITY_{finding.severity.name}"),
        )
        for finding in worst_first[:_MAX_FINDINGS]
    ]
    return pb.Findings(findings=told, total=len(findings))


def _rule_edit(edit: RuleEdit) -> pb.RuleEdit:
    return pb.RuleEdit(
        kind=pb.RuleEditKind.Value(f"RULE_EDIT_KIND_{edit.kind.name}"),
        path=edit.path,
        before=edit.before,
        after=edit.after,
        summary=edit.summary,
    )


def _number_edits(edits: Sequence[NumberEdit]) -> list[pb.NumberEdit]:
    return [pb.NumberEdit(path=edit.path, before=edit.before, after=edit.after) for edit in edits]


def _report(report: DryRunReport) -> pb.DryRunReport:
    low, high = interval(report.lost, report.runs)
    return pb.DryRunReport(
        runs=report.runs,
        first_run=report.first_run,
        turns=report.turns,
        lost=report.lost,
        won=report.won,
        survived=report.survived,
        errored=report.errored,
        fail_rate=report.fail_rate,
        wilson_low=low,
        wilson_high=high,
        persona=engine.Persona.Value(f"PERSONA_{report.persona.upper()}"),
        seed=report.seed,
        losses=[engine.NamedCount(id=name, count=count) for name, count in report.losses.items()],
        horizon=report.horizon,
        errors=[
            engine.RuleError(code=error.code, rule=error.rule, message=error.message)
            for error in report.errors
        ],
        rng_version=report.rng_version,
    )


def _scenario(record: ScenarioRecord) -> pb.CompiledScenario:
    scenario = record.scenario
    compiled = pb.CompiledScenario(
        scenario_id=scenario.scenario_id,
        name=scenario.name,
        spec_hash=scenario.spec_hash,
        spec=scenario.document,
        dry_run=_report(record.dry_run),
        edits=_number_edits(record.edits),
        findings=_findings(record.findings).findings,
    )
    compiled.create_time.FromDatetime(scenario.create_time)
    return compiled


def _summaries(page: ScenarioPage) -> list[pb.ScenarioSummary]:
    summaries = []
    for stored in page.summaries:
        summary = pb.ScenarioSummary(
            scenario_id=stored.scenario_id,
            name=stored.name,
            spec_hash=stored.spec_hash,
            fail_rate=stored.fail_rate,
        )
        summary.create_time.FromDatetime(stored.create_time)
        summaries.append(summary)
    return summaries
