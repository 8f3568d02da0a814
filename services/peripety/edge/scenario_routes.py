"""Routes of scenarios: a description becomes a specification, and a specification a playable scenario."""

from __future__ import annotations

import hashlib
import json
import uuid
from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Body, Header, Request
from fastapi.responses import JSONResponse, Response

from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.edge.event_stream import (
    EventStreamResponse,
    ServerEvent,
    parse_event_id,
    with_heartbeats,
)
from peripety.edge.request_models import GenerateBody, IdempotencyKey  # noqa: TC001 - read at run time
from peripety.engine import canonicalize
from peripety.engine.schemas import scenario_schema
from peripety.errors import InvalidArgumentError, UnavailableError
from peripety.rpc.proto_json import to_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.edge.calls import RpcCaller, RpcMethod
    from peripety.edge.generated_specs import GeneratedSpecs

_SERVICE = "/peripety.api.scenario.v1.ScenarioService/"
_UUID_NAMESPACE = uuid.UUID("6f4a2c52-5b0e-4a55-9d0c-5f8f1f6a1f0e")


_ACCEPTED: dict[int | str, dict[str, Any]] = {202: {"description": "The work continues; see `run_id`."}}


def _accepts_events(accept: str | None) -> bool:
    return accept is not None and "text/event-stream" in accept.lower()


class ScenarioRoutes:
    """Handlers of the routes.

    Args:
        caller: calls the scenario service.
        specs: store of generated specifications.
    """

    def __init__(self, caller: RpcCaller, specs: GeneratedSpecs) -> None:
        self._caller = caller
        self._specs = specs
        self.router = APIRouter(tags=["scenarios"])
        self.router.add_api_route(
            "/scenarios/generate",
            self.generate,
            methods=["POST"],
            summary="Write a specification from a description",
            response_class=JSONResponse,
            responses=_ACCEPTED,
        )
        self.router.add_api_route(
            "/scenarios/{scenario_id}/compile",
            self.compile,
            methods=["POST"],
            summary="Check a specification and store it as a playable scenario",
            response_class=JSONResponse,
        )

        self.router.add_api_route(
            "/scenarios/schema",
            self.read_schema,
            methods=["GET"],
            summary="Read the JSON Schema of specifications",
            response_class=JSONResponse,
        )
        for path, handler, summary in (
            ("", self.read_run, "Read the state of a generation"),
            ("/events", self.follow_run, "Follow a generation"),
        ):
            add = self.router.add_api_route
            add(f"/scenarios/runs/{{run_id}}{path}", handler, methods=["GET"], summary=summary)

    def _method(self, name: str) -> RpcMethod:
        return self._caller.methods[_SERVICE + name]

    async def generate(
        self,
        body: GenerateBody,
        accept: Annotated[str | None, Header()] = None,
        prefer: Annotated[str | None, Header()] = None,
        idempotency_key: IdempotencyKey = None,
    ) -> Response:
        """Return the specification as JSON, or, with `Accept: text/event-stream`, events.

        With `Prefer: respond-async` the answer is 202 with a `run_id`, and the work continues without the
        client; see `/scenarios/runs/{run_id}`.

        The events are `progress`, `draft`, `finding`, `repaired`, `numbers_adjusted`, `result` (author, usage
        and certificate) and, as the last one, `spec` or `error`. A repeated request with the same
        `Idempotency-Key` continues the same work.
        """
        request = pb.GenerateScenarioRequest(
            request_id=str(idempotency_key or uuid.uuid4()),
            description=body.description,
            language=body.language,
        )
        if body.seed is not None:
            request.seed = body.seed
        if body.level is not None:
            request.level = pb.ValidationLevel.Value(f"VALIDATION_LEVEL_{body.level.upper()}")
        events = self._caller.stream(self._method("GenerateScenario"), request)
        if prefer is not None and "respond-async" in prefer.lower():
            async with aclosing(events):
                run_id = (await anext(events)).run_id
            headers = {"location": f"/scenarios/runs/{run_id}", "preference-applied": "respond-async"}
            return JSONResponse({"run_id": run_id}, 202, headers)
        if _accepts_events(accept):
            return EventStreamResponse(with_heartbeats(self._generation_events(events)))
        async for event in events:
            kind = event.WhichOneof("event")
            if kind == "completed":
                return Response(await self._keep(event.completed.spec), media_type="application/json")
            if kind == "rejected":
                return _rejection(event.rejected.findings)
        raise _incomplete_error()

    async def read_schema(self, spec_version: Literal["1.0", "1.1"] = "1.1") -> JSONResponse:
        """Return the JSON Schema (2020-12) of a version of the specification, for editors."""
        return JSONResponse(scenario_schema({"spec_version": spec_version}))

    async def read_run(self, run_id: str) -> JSONResponse:
        """Return the state of a generation: `running`, `completed`, `rejected`, `failed` or `cancelled`."""
        request = pb.GetScenarioRunRequest(run_id=run_id)
        got = await self._caller.call(self._method("GetScenarioRun"), request)
        return JSONResponse(to_json(got.run))

    async def follow_run(
        self, run_id: str, last_event_id: Annotated[str | None, Header()] = None
    ) -> EventStreamResponse:
        """Stream the events of a generation, recorded ones first, as `/scenarios/generate` does."""
        # A stream sends its status at once, so what can be wrong is found before.
        await self._caller.call(self._method("GetScenarioRun"), pb.GetScenarioRunRequest(run_id=run_id))
        after, _ = parse_event_id(last_event_id)
        request = pb.ResumeScenarioRunRequest(run_id=run_id, after_sequence=after)
        responses = self._caller.stream(self._method("ResumeScenarioRun"), request)
        events = (response.generation async for response in responses if response.HasField("generation"))
        return EventStreamResponse(with_heartbeats(self._generation_events(events)))

    async def _generation_events(self, events: AsyncIterator[Any]) -> AsyncIterator[ServerEvent]:
        async for event in events:
            kind = event.WhichOneof("event")
            position = str(event.sequence)
            if kind == "completed":
                yield ServerEvent.of("result", _to_result(event.completed))
                spec = (await self._keep(event.completed.spec)).decode()
                yield ServerEvent("spec", spec, position)
            elif kind == "rejected":
                yield ServerEvent.of("error", _rejection_document(event.rejected.findings), position)
            elif kind == "findings":
                for finding in event.findings.findings:
                    yield ServerEvent.of("finding", to_json(finding), position)
            elif kind == "draft":
                # The document itself would show the rules to the person who is about to play.
                yield ServerEvent.of("draft", {"attempt": event.draft.attempt}, position)
            elif kind in {"repaired", "numbers_adjusted"}:
                edits = getattr(event, kind).edits
                yield ServerEvent.of(kind, {"edits": len(edits)}, position)
            elif kind is not None:
                yield ServerEvent.of(kind, to_json(getattr(event, kind)), position)

    async def _keep(self, document: bytes) -> bytes:
        """Store a generated specification under its id, and return it."""
        spec_id = str(json.loads(document)["id"])
        await self._specs.put(spec_id, _hash(document), document)
        return document

    async def compile(
        self,
        scenario_id: str,
        request: Request,
        body: Annotated[
            dict[str, Any] | None,
            Body(description="A specification; without one, the generated specification with that id."),
        ] = None,
    ) -> Response:
        """Validate, dry-run and store; 422 with the findings if the specification is not accepted.

        Without a body, or with an empty object, it compiles the specification with this id that was generated
        within the last day.
        """
        document = await request.body() if body else await self._specs.find(scenario_id)
        if body:
            await self._check_id(scenario_id, body)
        compile_request = pb.CompileScenarioRequest(
            request_id=str(uuid.uuid5(_UUID_NAMESPACE, document.decode("utf-8", "replace"))), spec=document
        )
        async for event in self._caller.stream(self._method("CompileScenario"), compile_request):
            kind = event.WhichOneof("event")
            if kind == "compiled":
                return JSONResponse(await self._to_compiled(event.compiled))
            if kind == "rejected":
                dry_run = to_json(event.rejected.dry_run) if event.rejected.HasField("dry_run") else None
                return _rejection(event.rejected.findings, dry_run)
        raise _incomplete_error()

    async def _check_id(self, scenario_id: str, body: dict[str, Any]) -> None:
        if body.get("id") != scenario_id:
            raise InvalidArgumentError(
                "the `id` of the specification differs from that of the path; send the same one",
                code="OTHER_SPEC",
            )
        await self._specs.check_unambiguous(scenario_id, _hash(canonicalize(body)))

    async def _to_compiled(self, compiled: pb.CompiledScenario) -> dict[str, Any]:
        certificate = None
        if compiled.certificate_hash:
            got = await self._caller.call(
                self._method("GetCertificate"),
                pb.GetCertificateRequest(certificate_hash=compiled.certificate_hash),
            )
            certificate = json.loads(got.certificate.document)
        return {
            "scenario_id": compiled.scenario_id,
            "name": compiled.name,
            "spec_hash": compiled.spec_hash,
            "fail_rate": compiled.dry_run.fail_rate,
            "dry_run": to_json(compiled.dry_run),
            "edits": [to_json(edit) for edit in compiled.edits],
            "findings": [to_json(finding) for finding in compiled.findings],
            "certificate": certificate,
        }


def _to_result(completed: pb.GenerateScenarioResponse.Completed) -> dict[str, Any]:
    """Return the author, the usage and the certificate of a specification, without its rules."""
    result = to_json(completed)
    del result["spec"]
    # Texts of findings and proofs can show rules to the person who is about to play.
    result["findings"] = len(result.get("findings", ()))
    if "certificate" in result:
        names = ("certificate_hash", "verdict", "band", "planner_gap")
        certificate = {name: result["certificate"][name] for name in names if name in result["certificate"]}
        certificate["personas"] = [
            {name: one[name] for name in ("persona", "lost", "won", "survived") if name in one}
            for one in result["certificate"].get("personas", ())
        ]
        result["certificate"] = certificate
    return result


def _rejection_document(findings: pb.Findings) -> dict[str, Any]:
    return {
        "type": "urn:peripety:error:SPEC_INVALID",
        "title": "Specification not accepted",
        "status": 422,
        "detail": f"the specification has {findings.total} findings; see `findings`",
        "code": "SPEC_INVALID",
        "findings": [to_json(finding) for finding in findings.findings],
    }


def _rejection(findings: pb.Findings, dry_run: dict[str, Any] | None = None) -> JSONResponse:
    document = _rejection_document(findings)
    if dry_run is not None:
        document |= {"fail_rate": dry_run.get("fail_rate", 0.0), "dry_run": dry_run}
    return JSONResponse(document, 422, media_type="application/problem+json")


def _incomplete_error() -> UnavailableError:
    return UnavailableError("the service ended the work without a result; repeat the request")


def _hash(document: bytes) -> str:
    return hashlib.sha256(document).hexdigest()
