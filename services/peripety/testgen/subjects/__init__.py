"""What tests are run on: a compiled scenario, a policy, or a command that the caller names."""
