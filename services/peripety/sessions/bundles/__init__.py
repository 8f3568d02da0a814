"""Session bundles: files that contain a whole session and can be verified independently."""
