"""The Python client: channels that carry deadlines and request ids, and errors as `PeripetyError`."""
