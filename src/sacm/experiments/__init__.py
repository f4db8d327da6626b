"""Compare strategies in pairs, test what they gain, and search for settings."""
