"""Layers that several architectures truly share, and nothing else."""
