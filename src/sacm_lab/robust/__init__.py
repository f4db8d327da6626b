"""Who is robust: protocols with broken data as named experiments, and what they found."""
