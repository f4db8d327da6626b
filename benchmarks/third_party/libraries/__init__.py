"""Models to attach to, one file for each library."""
