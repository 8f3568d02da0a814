"""The Python client.

async with connect("127.0.0.1:50051") as client:
    session = await client.sessions.GetSession(GetSessionRequest(session_id=...))
"""

from peripety.client.facade import Client, connect

__all__ = ["Client", "connect"]
