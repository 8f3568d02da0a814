"""When each chunk is sent and how a response ends."""
