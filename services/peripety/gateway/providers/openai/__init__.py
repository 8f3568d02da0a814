"""OpenAI Chat Completions API and its dialects."""
