"""The half of a turn that a language model tells, and the server when the model cannot."""
