"""Agents: manifests of phases that run one after another over one stored conversation."""
