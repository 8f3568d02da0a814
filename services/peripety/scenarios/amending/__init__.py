"""Amendment of stored scenarios from a text: by a model, or by rules without one."""
