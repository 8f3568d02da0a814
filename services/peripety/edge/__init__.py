"""HTTP edge: JSON, server-sent events, WebSockets and Connect in front of the gRPC services."""
