"""Provider without a model."""
