"""The gRPC server: harness, interceptor, error table, options."""
