"""PolicyService: one handler per RPC."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.api.policy.v1.policy_pb2_grpc import PolicyServiceServicer
from peripety.core.concurrency import closing
from peripety.core.idempotency.stream import ResponseRecorder
from peripety.core.validation import require_field
from peripety.errors import InvalidArgumentError, PeripetyError, SpecError
from peripety.policy.analysis.differences import find_differences
from peripety.policy.analysis.lint import find_rule_issues
from peripety.policy.coverage_generation.gap_scenarios import generate_for_gaps
from peripety.policy.decisions import decide_batch, with_request_fields
from peripety.policy.mutation.runner import mutation_score, run_mutants
from peripety.policy.pb import requests as pb_requests
from peripety.policy.pb import responses
from peripety.policy.types import CoverageGenerated
from peripety.policy.verification.verify import verify
from peripety.rpc.status import finding_to_proto

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.core.concurrency import WorkerPool
    from peripety.core.idempotency.store import IdempotencyStore
    from peripety.core.mutation_testing import Mutant
    from peripety.engine import Policy
    from peripety.errors import Finding
    from peripety.policy.compile_cache import CachingCompiler
    from peripety.policy.decisions import PolicyResolver
    from peripety.policy.store import PolicyStore
    from peripety.policy.types import TestScenario


_LAST_EVENTS = frozenset({"compiled", "failed"})
_DEFAULT_EXAMPLES = 50
_MAX_EXAMPLES = 1_000


class PolicyServicer(PolicyServiceServicer):
    """gRPC servicer of policies; undefined calls return UNIMPLEMENTED.

    Args:
        compiler: the caching policy compiler.
        store: the store of compiled policies.
        sources: resolves the policy of a request.
        requests: the idempotency log of requests.
        workers: the worker pool for long computations.
    """

    def __init__(
        self,
        compiler: CachingCompiler,
        store: PolicyStore,
        sources: PolicyResolver,
        requests: IdempotencyStore,
        workers: WorkerPool,
    ) -> None:
        self._compiler = compiler
        self._store = store
        self._sources = sources
        self._record = ResponseRecorder(requests, _LAST_EVENTS)
        self._workers = workers

    def CompilePolicy(  # noqa: N802 - the contract's name
        self,
        request: pb.CompilePolicyRequest,
        _context: Any,
    ) -> AsyncIterator[pb.CompilePolicyResponse]:
        """Write rules and scenarios from a written policy, and store them."""
        compiled = self._compiler.compile(pb_requests.order_from_proto(request), request.policy_id or None)
        return self._record.stream(request, compiled, responses.event_to_proto, pb.CompilePolicyResponse)

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
        return pb.DecideResponse(result=responses.decision_to_proto(outcome))

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
