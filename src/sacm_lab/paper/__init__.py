"""The paper's experiments, published numbers, figures and commands."""
