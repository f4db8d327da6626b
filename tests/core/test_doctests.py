"""The examples in the docstrings of the core and the theory run and give what they show."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest
import torch

import sacm.core

MODULES = ["sacm.theory", *(m.name for m in pkgutil.iter_modules(sacm.core.__path__, "sacm.core."))]
WITH_EXAMPLES = {
    "sacm.core.config",
    "sacm.core.detrend",
    "sacm.core.mapper",
    "sacm.core.masking",
    "sacm.core.score_windows",
    "sacm.core.scorer",
    "sacm.theory",
}


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_are_true(name: str) -> None:
    torch.manual_seed(0)
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0
    assert bool(result.attempted) == (name in WITH_EXAMPLES)
