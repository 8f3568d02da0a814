"""PolicyService: one handler per RPC."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.api.policy.v1.policy_pb2_grpc import PolicyServiceServicer
from peripety.core.call_context import now_micros
from peripety.core.concurrency import closing
from peripety.core.idempotency.stream import ResponseRecorder
from peripety.core.runs.call_runs import CallMethod, CallRuns, CallRunState
from peripety.errors import InvalidArgumentError, PeripetyError, SpecError, require_field
from peripety.gateway.pb.resources import request_key_from_proto
from peripety.policy.analysis.differences import find_differences
from peripety.policy.analysis.lint import find_rule_issues
from peripety.policy.coverage_generation.gap_scenarios import generate_for_gaps
from peripety.policy.decisions import decide_batch, with_request_fields
from peripety.policy.explanation import explain_decision
from peripety.policy.mutation.runner import mutation_score, run_mutants
from peripety.policy.partial_evaluation import decide_partially
from peripety.policy.pb import requests as pb_requests
from peripety.policy.pb import responses
from peripety.policy.types import CoverageGenerated
from peripety.policy.verification.back_translation import translate_policy
from peripety.policy.verification.verify import verify
from peripety.rpc.messages import call_run_state_from_proto, call_run_to_proto, copy_fields
from peripety.rpc.status import finding_to_proto

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.core.concurrency import WorkerPool
    from peripety.core.idempotency.store import IdempotencyStore
    from peripety.core.mutation_testing import Mutant
    from peripety.core.runs.call_runs import CallRunStore
    from peripety.engine import Policy
    from peripety.errors import Finding
    from peripety.policy.compile_cache import CachingCompiler
    from peripety.policy.decisions import PolicyResolver
    from peripety.policy.store import PolicyStore
    from peripety.policy.types import TestScenario


_DEFAULT_EXAMPLES = 50
_MAX_EXAMPLES = 1_000


class PolicyServicer(PolicyServiceServicer):
    """gRPC servicer of policies; undefined calls return UNIMPLEMENTED.

    Args:
        compiler: the caching policy compiler.
        store: the store of compiled policies.
        sources: resolves the policy of a request.
        requests: the idempotency log of requests.
        runs: stores the runs of compilations.
        configured: fingerprint of the default provider configuration.
        workers: the worker pool for long computations.
    """

    def __init__(
        self,
        compiler: CachingCompiler,
        store: PolicyStore,
        sources: PolicyResolver,
        requests: IdempotencyStore,
        runs: CallRunStore,
        configured: str,
        workers: WorkerPool,
    ) -> None:
        self._store = store
        self._sources = sources
        self._record = ResponseRecorder(requests, ())
        self._runs = CallRuns(runs, (_compile_method(compiler),), configured, now_micros)
        self._workers = workers

    async def aclose(self) -> None:
        """Release all runs of this process; another process can continue them."""
        await self._runs.aclose()

    def CompilePolicy(  # noqa: N802 - the contract's name
        self,
        request: pb.CompilePolicyRequest,
        _context: Any,
    ) -> AsyncIterator[pb.CompilePolicyResponse]:
        """Write rules and scenarios from a written policy, and store them."""
        return self._runs.stream(request)

    async def ResumePolicyRun(  # noqa: N802 - the contract's name
        self,
        request: pb.ResumePolicyRunRequest,
        _context: Any,
    ) -> AsyncIterator[pb.ResumePolicyRunResponse]:
        """Stream the events of a run after a given sequence number."""
        require_field(request.run_id, ".run_id", "is required")
        resumed = self._runs.resume_stream(
            request.run_id,
            request.after_sequence,
            recorded_only=request.recorded_only,
        )
        async with closing(resumed) as events:
            async for event in events:
                yield pb.ResumePolicyRunResponse(event=event)

    async def GetPolicyRun(  # noqa: N802 - the contract's name
        self,
        request: pb.GetPolicyRunRequest,
        _context: Any,
    ) -> pb.GetPolicyRunResponse:
        """Return a run."""
        require_field(request.run_id, ".run_id", "is required")
        return pb.GetPolicyRunResponse(run=call_run_to_proto(await self._runs.get(request.run_id)))

    async def ListPolicyRuns(  # noqa: N802 - the contract's name
        self,
        request: pb.ListPolicyRunsRequest,
        _context: Any,
    ) -> pb.ListPolicyRunsResponse:
        """List the runs of the caller, newest first."""
        state = call_run_state_from_proto(request.state)
        page = await self._runs.list(state, request.page_size, request.page_token)
        return pb.ListPolicyRunsResponse(
            runs=map(call_run_to_proto, page.items),
            next_page_token=page.next_page_token,
        )

    async def CancelPolicyRun(  # noqa: N802 - the contract's name
        self,
        request: pb.CancelPolicyRunRequest,
        _context: Any,
    ) -> pb.CancelPolicyRunResponse:
        """Cancel a run."""
        require_field(request.run_id, ".run_id", "is required")
        run = await self._runs.cancel(request.run_id, request_key_from_proto(request))
        return pb.CancelPolicyRunResponse(run=call_run_to_proto(run))

    async def DeletePolicyRun(  # noqa: N802 - the contract's name
        self,
        request: pb.DeletePolicyRunRequest,
        _context: Any,
    ) -> pb.DeletePolicyRunResponse:
        """Delete a run with its events."""
        require_field(request.run_id, ".run_id", "is required")
        await self._runs.delete(request.run_id, request_key_from_proto(request))
        return pb.DeletePolicyRunResponse()

    async def VerifyPolicy(  # noqa: N802 - the contract's name
        self,
        request: pb.VerifyPolicyRequest,
        _context: Any,
    ) -> pb.VerifyPolicyResponse:
        """Run scenarios against rules."""
        try:
            policy, suite = await self._resolve_suite(request)
        except SpecError as error:
            return pb.VerifyPolicyResponse(findings=map(finding_to_proto, error.findings))
        report = await self._workers.run(verify, policy, suite, mutation=request.mutation)
        return pb.VerifyPolicyResponse(verification=responses.verification_to_proto(report))

    async def AnalyzePolicy(  # noqa: N802 - the contract's name
        self,
        request: pb.AnalyzePolicyRequest,
        _context: Any,
    ) -> pb.AnalyzePolicyResponse:
        """Find rules without effect."""
        try:
            policy = await self._sources.policy(pb_requests.policy_source_from_proto(request.policy))
        except SpecError as error:
            return pb.AnalyzePolicyResponse(findings=map(finding_to_proto, error.findings))
        return responses.issues_to_proto(await self._workers.run(find_rule_issues, policy))

    async def ExplainPolicy(  # noqa: N802 - the contract's name
        self,
        request: pb.ExplainPolicyRequest,
        _context: Any,
    ) -> pb.ExplainPolicyResponse:
        """Describe the rules of each sentence in English."""
        try:
            policy = await self._sources.policy(pb_requests.policy_source_from_proto(request.policy))
        except SpecError as error:
            return pb.ExplainPolicyResponse(findings=map(finding_to_proto, error.findings))
        told = await self._workers.run(translate_policy, policy, request.constitution)
        return responses.sentences_to_proto(told)

    async def DiffPolicies(  # noqa: N802 - the contract's name
        self,
        request: pb.DiffPoliciesRequest,
        _context: Any,
    ) -> pb.DiffPoliciesResponse:
        """Find requests that two policies decide differently."""
        require_field(
            request.max_examples >= 0,
            ".max_examples",
            f"must not be negative; 0 means {_DEFAULT_EXAMPLES}",
        )
        most = min(request.max_examples or _DEFAULT_EXAMPLES, _MAX_EXAMPLES)
        policies: list[Policy] = []
        wrong: list[Finding] = []
        for name, source in (("before", request.before), ("after", request.after)):
            meant = pb_requests.policy_source_from_proto(source, f".{name}")
            try:
                policies.append(await self._sources.policy(meant, f".{name}"))
            except SpecError as error:
                wrong += [replace(finding, path=f"/{name}{finding.path}") for finding in error.findings]
        if wrong:
            return pb.DiffPoliciesResponse(findings=map(finding_to_proto, wrong))
        before, after = policies
        return responses.difference_to_proto(
            await self._workers.run(find_differences, before, after, max_examples=most),
        )

    async def RunMutationTests(  # noqa: N802 - the contract's name
        self,
        request: pb.RunMutationTestsRequest,
        _context: Any,
    ) -> AsyncIterator[pb.RunMutationTestsResponse]:
        """Run mutation tests: change rules in small ways, and count the changes that scenarios detect."""
        response = pb.RunMutationTestsResponse
        try:
            policy, suite = await self._resolve_suite(request)
        except SpecError as error:
            scored = response.Scored(findings=map(finding_to_proto, error.findings))
            yield response(sequence=1, scored=scored)
            return
        done: list[Mutant] = []
        sequence = 0
        blocks = await self._workers.run(run_mutants, policy, suite, tuple(request.operators))
        async with closing(self._workers.iterate(blocks)) as mutating:
            async for block in mutating:
                done += block.mutants
                for mutants in responses.mutants_to_proto(block):
                    sequence += 1
                    yield response(sequence=sequence, mutants=mutants)
        scored = response.Scored(score=responses.mutation_score_to_proto(mutation_score(done)))
        yield response(sequence=sequence + 1, scored=scored)

    async def GenerateCoverageScenarios(  # noqa: N802 - the contract's name
        self,
        request: pb.GenerateCoverageScenariosRequest,
        _context: Any,
    ) -> AsyncIterator[pb.GenerateCoverageScenariosResponse]:
        """Generate scenarios for coverage gaps."""
        response = pb.GenerateCoverageScenariosResponse
        require_field(request.max_scenarios >= 0, ".max_scenarios", "must not be negative; 0 means no limit")
        try:
            policy, suite = await self._resolve_suite(request)
        except SpecError as error:
            covered = response.Covered(findings=map(finding_to_proto, error.findings))
            yield response(sequence=1, covered=covered)
            return
        sequence = 0
        made = generate_for_gaps(policy, suite, request.max_scenarios)
        async with closing(self._workers.iterate(made)) as covering:
            async for one in covering:
                sequence += 1
                if isinstance(one, CoverageGenerated):
                    yield response(sequence=sequence, covered=responses.covered_to_proto(one))
                else:
                    yield response(sequence=sequence, scenario=responses.scenario_to_proto(one))

    async def Decide(  # noqa: N802 - the contract's name
        self,
        request: pb.DecideRequest,
        _context: Any,
    ) -> pb.DecideResponse:
        """Decide one request."""
        policy = await self._sources.policy(pb_requests.policy_source_from_proto(request.policy))
        call = pb_requests.tool_request_from_proto(request.request)
        (outcome,) = await decide_batch(policy, [call], request.request.ByteSize())
        if isinstance(outcome, PeripetyError):
            raise outcome
        considered = await self._workers.run(explain_decision, policy, call) if request.explain else ()
        return pb.DecideResponse(
            result=responses.decision_to_proto(outcome),
            considered=(copy_fields(pb.ConsideredRule, rule) for rule in considered),
        )

    async def DecidePartially(  # noqa: N802 - the contract's name
        self,
        request: pb.DecidePartiallyRequest,
        _context: Any,
    ) -> pb.DecidePartiallyResponse:
        """Return the remaining conditions for calls of a tool."""
        policy = await self._sources.policy(pb_requests.policy_source_from_proto(request.policy))
        known = pb_requests.tool_request_from_proto(request.known, ".known")
        has_open_roles = request.has_open_roles
        try:
            partial = await self._workers.run(decide_partially, policy, known, has_open_roles=has_open_roles)
        except InvalidArgumentError as error:
            raise with_request_fields(error, ".known") from None
        return responses.partial_decision_to_proto(partial)

    async def DecideMany(  # noqa: N802 - the contract's name
        self,
        requests: AsyncIterator[pb.DecideManyRequest],
        _context: Any,
    ) -> AsyncIterator[pb.DecideManyResponse]:
        """Decide many requests, message by message, with back-pressure on the client."""
        policy = None
        sequence = 0
        async for request in requests:
            if policy is None:
                policy = await self._sources.policy(pb_requests.policy_source_from_proto(request.policy))
            items = pb_requests.items_from_proto(request)
            outcomes = await decide_batch(policy, [call for _, call in items], request.ByteSize())
            names = (name for name, _ in items)
            for response in pb_requests.decisions_to_proto(zip(names, outcomes, strict=True)):
                response.sequence = sequence = sequence + 1
                yield response

    async def GetPolicy(  # noqa: N802 - the contract's name
        self,
        request: pb.GetPolicyRequest,
        _context: Any,
    ) -> pb.GetPolicyResponse:
        """Read a stored policy."""
        require_field(request.policy_id, ".policy_id", "is required")
        kept = await self._store.get(request.policy_id, request.policy_hash or None)
        return pb.GetPolicyResponse(policy=responses.policy_to_proto(kept))

    async def ListPolicies(  # noqa: N802 - the contract's name
        self,
        request: pb.ListPoliciesRequest,
        _context: Any,
    ) -> pb.ListPoliciesResponse:
        """List stored policies."""
        page = await self._store.list_policies(request.page_size, request.page_token)
        return pb.ListPoliciesResponse(
            policies=responses.summaries_to_proto(page),
            next_page_token=page.next_page_token,
        )

    async def ListPolicyVersions(  # noqa: N802 - the contract's name
        self,
        request: pb.ListPolicyVersionsRequest,
        _context: Any,
    ) -> pb.ListPolicyVersionsResponse:
        """List the versions of a stored policy."""
        require_field(request.policy_id, ".policy_id", "is required")
        page = await self._store.list_versions(request.policy_id, request.page_size, request.page_token)
        return pb.ListPolicyVersionsResponse(
            versions=responses.summaries_to_proto(page),
            next_page_token=page.next_page_token,
        )

    async def DeletePolicy(  # noqa: N802 - the contract's name
        self,
        request: pb.DeletePolicyRequest,
        _context: Any,
    ) -> pb.DeletePolicyResponse:
        """Delete a stored policy."""
        require_field(request.policy_id, ".policy_id", "is required")
        await self._record.execute_once(request, partial(self._store.delete, request.policy_id))
        return pb.DeletePolicyResponse()

    async def _resolve_suite(
        self,
        request: pb.VerifyPolicyRequest | pb.RunMutationTestsRequest | pb.GenerateCoverageScenariosRequest,
    ) -> tuple[Policy, tuple[TestScenario, ...]]:
        """Return the rules and scenarios of a request, after validation by the engine."""
        source, scenarios = (
            pb_requests.policy_source_from_proto(request.policy),
            pb_requests.scenarios_from_proto(request.scenarios),
        )
        policy = await self._sources.policy(source)
        if not scenarios:
            return policy, await self._sources.suite(source)
        try:
            await self._workers.run(policy.prepare, [scenario.request for scenario in scenarios])
        except InvalidArgumentError as error:
            raise with_request_fields(error, ".scenarios[{}].request") from None
        return policy, scenarios


def _compile_method(compiler: CachingCompiler) -> CallMethod:
    async def check(request: pb.CompilePolicyRequest) -> None:
        await compiler.check(pb_requests.order_from_proto(request), request.policy_id or None)

    return CallMethod(
        pb.CompilePolicyRequest,
        pb.CompilePolicyResponse,
        check,
        lambda request: compiler.compile(pb_requests.order_from_proto(request), request.policy_id or None),
        responses.event_to_proto,
        lambda request: request.constitution,
        {"failed": CallRunState.REJECTED},
        _without_times,
    )


def _without_times(response: pb.CompilePolicyResponse) -> pb.CompilePolicyResponse:
    if response.HasField("decided"):
        same = pb.CompilePolicyResponse()
        same.CopyFrom(response)
        same.decided.ClearField("time")
        return same
    return response
