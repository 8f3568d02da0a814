"""Gemini generateContent API."""
