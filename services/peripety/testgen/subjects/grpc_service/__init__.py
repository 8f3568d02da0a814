"""gRPC services as subjects, by their reflection."""
