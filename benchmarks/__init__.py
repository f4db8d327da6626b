"""Benchmarks. Each file with a `main` is a program: `python -m benchmarks.NAME --help`."""

from __future__ import annotations

import argparse


def make_parser(description: str | None) -> argparse.ArgumentParser:
    """A parser that prints a module's docstring as its help."""
    return argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
