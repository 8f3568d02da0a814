"""What the APIs of OpenAI, and those that follow them, have in common."""
