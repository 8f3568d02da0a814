"""Agents: manifests of phases that are worked through over one stored conversation."""
