"""The examples in the docstrings of the injection run and give what they show."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest
import torch

import sacm.inject

MODULES = [m.name for m in pkgutil.walk_packages(sacm.inject.__path__, "sacm.inject.")]
WITH_EXAMPLES = {
    "sacm.inject.attach",
    "sacm.inject.layout",
    "sacm.inject.modulator",
    "sacm.inject.sites",
}


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_are_true(name: str) -> None:
    torch.manual_seed(0)
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0
    assert bool(result.attempted) == (name in WITH_EXAMPLES)
