"""Python client: `connect` returns typed stubs of every service, `open_channel` a channel for custom stubs.

async with connect("127.0.0.1:50051") as client:
    async for event in client.scenarios.GenerateScenario(request):
        ...
"""

from peripety.client.channel import open_channel
from peripety.client.facade import Client, connect
from peripety.client.validation import validate_scenarios

__all__ = ["Client", "connect", "open_channel", "validate_scenarios"]
