"""Authoring loop: rules and scenarios from models, judged by the engine."""
