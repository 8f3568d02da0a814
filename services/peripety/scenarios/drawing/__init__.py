"""What drawings are made of: markup that is always well formed, and a frame that says what it shows."""
