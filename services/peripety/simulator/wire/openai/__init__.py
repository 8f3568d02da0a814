"""Common parts of the OpenAI APIs and of compatible ones."""
