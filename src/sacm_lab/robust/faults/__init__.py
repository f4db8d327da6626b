"""Faults for robustness protocols: their names, known without importing anything heavy."""

from __future__ import annotations

from typing import Any

from sacm.registry import CORRUPTIONS, TRAINING_FAULTS, Registry

# The eight scenarios of SensorFault-Bench (arXiv:2605.10822), and its other families, which may be
# used to train or to choose settings when the first are reported.
TESTED = (
    *("drift", "attenuation", "noise", "spike", "time_stretch", "time_compress"),
    *("stuck_sensor", "missing_data"),
)
TRANSFER = (
    *("linear_drift", "nonlinear_drift", "scaling", "time_varying_scaling", "trimming_constant"),
    *("trimming_varying", "packet_loss"),
)
OTHERS = (
    *("missing", "zero", "stuck", "points", "burst", "mix"),
    *("code", "near_stuck", "shift", "range", "clipped", "all"),
    *("tsf_const", "tsf_missing", "tsf_gaussian", "tsf_seq"),
    *("symmetric", "asymmetric", "anomalies"),
)
NOISE = ("missing", "gaussian", "student_t", "layered")  # of arrays only

FAULTS: Registry[Any] = Registry("fault")


def add_fault(name: str, fault: Any, *, group: str = "") -> None:
    """Make a fault available to protocols, `sacm corrupt`, `sacm.data.corrupt` and `contamination`.

    `fault` is a `sacm_lab.robust.faults.fault.Fault`, or the text that says where it is.
    """
    for registry in (FAULTS, TRAINING_FAULTS):
        registry.register(name, group=group)(fault)
    if name not in NOISE:  # `missing` of arrays sets single values to 0
        CORRUPTIONS.register(name, group=group)(fault)


def register() -> None:
    """Make the faults of the laboratory available by name."""
    for name in NOISE:
        CORRUPTIONS.register(name)(f"sacm_lab.robust.faults.noise:{name}")
    for group, names in (("tested", TESTED), ("transfer", TRANSFER), ("", OTHERS)):
        for name in names:
            add_fault(name, f"sacm_lab.robust.faults.catalogue:{name}", group=group)
