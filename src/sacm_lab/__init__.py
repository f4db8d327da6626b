"""The laboratory: the paper's experiments, robustness protocols, rivals and public data sets.

It is a plug-in of `sacm` like anybody's package: the entry point `lab` of the group
`sacm.plugins` imports this module, and `sacm` never imports it otherwise. Everything is registered
by reference, so that importing this module costs next to nothing.
"""

from __future__ import annotations

from typing import Any

from sacm.registry import COMMANDS, METRICS, Registry
from sacm_lab import datasets, rivals
from sacm_lab.robust import faults

CHECKS: Registry[Any] = Registry("check")
"""Functions `(run, data)` of a finished run and the clean data it was trained on.

They return a record whose `test` holds numbers by name; a job writes it into the run folder.
"""

datasets.register()
rivals.register()
faults.register()

for _name in (
    *("mse_last", "mae_last", "accuracy_last_ten", "mean_fault_mse", "worst_degradation"),
    *("clean_mse", *(f"degradation_{fault}" for fault in faults.TESTED), "f1_affiliation"),
):
    METRICS.register(_name)(f"sacm_lab.metrics:{_name}")

_RESEARCH = "For research"
for _name, _place, _help in (
    ("demo", "sacm_lab.demo:demo", "Compare raw training with SACM and with the guard."),
    ("data", "sacm_lab.datasets.commands:app", "List, describe and fetch the public data sets."),
    ("corrupt", "sacm_lab.robust.faults.commands:corrupt", "Corrupt a table on purpose."),
    ("paper", "sacm_lab.paper.commands:app", "The experiments and figures of the paper."),
    ("robust", "sacm_lab.robust.commands:app", "Robustness protocols: run, report, summary."),
):
    COMMANDS.register(_name, group=_RESEARCH, help=_help)(_place)

for _name, _function in {
    "faults": "check_faults",
    "protect": "check_protected",
    "last": "check_last_epoch",
    "random": "check_random_scores",
}.items():
    CHECKS.register(_name)(f"sacm_lab.robust.checks:{_function}")
