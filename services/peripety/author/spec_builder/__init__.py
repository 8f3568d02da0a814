"""From a blueprint to a specification."""
