"""Pytest plugin of `make test-engine`: loads the Hypothesis profiles where tests/conftest.py cannot be
imported.
"""

from __future__ import annotations

from support.examples import register_profiles

register_profiles()
