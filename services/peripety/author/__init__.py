"""Authors that need no model: scenarios, policies, tests and fallback narration."""
