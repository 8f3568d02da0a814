"""Gemini API."""
