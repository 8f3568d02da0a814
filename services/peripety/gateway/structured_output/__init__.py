"""JSON answers: incremental parsing, repair, validation."""
