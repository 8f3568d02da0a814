"""gRPC server: harness, interceptor, status table and options."""
