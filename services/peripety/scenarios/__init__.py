"""Scenarios: from free text to a specification that is checked, balanced and ready to be played."""
