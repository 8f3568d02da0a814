"""The providers: each turns a neutral request into one provider's call and the answer into neutral events."""
