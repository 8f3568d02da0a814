"""Conversations: in memory for a caller that holds one, in the database for stored ones."""

from peripety.gateway.conversations.conversation import Conversation, Turn

__all__ = ["Conversation", "Turn"]
