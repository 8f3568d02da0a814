"""Several turns with models: in memory for who holds them, in the database for who names them."""

from peripety.gateway.conversations.conversation import Conversation, Turn

__all__ = ["Conversation", "Turn"]
