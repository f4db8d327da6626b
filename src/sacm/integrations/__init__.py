"""SACM inside other people's training loops; nothing in this package imports from here."""
