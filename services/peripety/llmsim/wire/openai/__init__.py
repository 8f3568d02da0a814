"""OpenAI Chat Completions and Responses APIs."""
