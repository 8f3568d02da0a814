"""What rules mean, without running them: over the regions of arguments that no rule tells apart."""
