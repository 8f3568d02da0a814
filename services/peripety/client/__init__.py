"""Python client: `connect` returns typed stubs of every service, `open_channel` a channel for custom stubs.

async with connect("127.0.0.1:50051") as client:
    async for event in client.scenarios.GenerateScenario(request):
        ...
"""

from peripety.client.client import Client, connect, validate_scenarios
from peripety.rpc.channel import open_channel

__all__ = ["Client", "connect", "open_channel", "validate_scenarios"]
