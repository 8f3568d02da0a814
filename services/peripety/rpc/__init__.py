"""Both ends of a gRPC call: status mapping, channels, service container."""
