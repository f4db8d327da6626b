"""Tables, figures and self-contained HTML pages."""
