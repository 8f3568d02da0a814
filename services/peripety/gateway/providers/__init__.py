"""The providers: each turns a neutral request into one provider's calls and its answer into neutral events."""
