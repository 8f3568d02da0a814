"""Graph of rules: dependencies, activity, drawing."""
