"""Public benchmark data: catalogue, layouts, download and cache."""
