"""Every network states its dropout sites and its size in a test file of its own."""

from __future__ import annotations

from importlib import import_module

from sacm.backbones.registry import entry

from .cases import Case, every_case


@every_case
def test_sites_and_parameters_are_stated(case: Case) -> None:
    file = entry(case.name, case.task).model.__module__.rpartition(".")[2]
    stated = import_module(f"tests.backbones.test_{file}").EXPECTED
    assert (case.name, case.task) in [(each.name, each.task) for each in stated]
