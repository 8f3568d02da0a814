"""Subjects under test."""
