"""Decide on tool calls by a policy, and compare with the expected decisions."""

import json
import os
from pathlib import Path

from peripety.api.policy.v1.policy_pb2 import DecideRequest, Decision, PolicyRequest, PolicySource
from peripety.client import Client

ADDRESS = os.environ.get("PERIPETY_ADDRESS", "127.0.0.1:50051")
POLICY = PolicySource(document=Path("policy.json").read_bytes())

with Client(ADDRESS) as client:
    for call in json.loads(Path("policy_calls.json").read_bytes()):
        arguments = json.dumps(call["arguments"]).encode()
        request = PolicyRequest(server_name="files", tool_name=call["tool_name"], arguments=arguments)
        result = client.policies.Decide(DecideRequest(policy=POLICY, request=request)).result
        decided = Decision.Name(result.decision).removeprefix("DECISION_").lower()
        print(f"{call['tool_name']} {call['arguments']['path']}: {decided}")
        assert decided == call["expected"], result
