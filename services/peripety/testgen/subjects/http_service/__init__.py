"""HTTP services as subjects, by their OpenAPI documents."""
