"""What an experiment of the paper found: text, LaTeX, CSV, terminal tables, a page to explore."""
