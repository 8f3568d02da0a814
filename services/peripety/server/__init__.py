"""The gRPC server: listeners, interceptor, health, drain."""
