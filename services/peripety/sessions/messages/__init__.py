"""Sessions ↔ protobuf messages, nothing else: what is asked, what is told, and the parts of both."""
