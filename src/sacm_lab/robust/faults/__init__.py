"""Faults for robustness protocols: their names, known without importing anything heavy."""

from __future__ import annotations

from sacm.registry import CORRUPTIONS

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
    *("code", "near_stuck", "shift", "range", "clipped", "all"),
    *("tsf_const", "tsf_missing", "tsf_gaussian", "tsf_seq"),
    *("symmetric", "asymmetric", "anomalies"),
)


def register() -> None:
    """Make the faults available to `sacm.data.corrupt` by name."""
    for group, names in (("tested", TESTED), ("transfer", TRANSFER), ("", OTHERS)):
        for name in names:
            CORRUPTIONS.register(name, group=group)(f"sacm_lab.robust.faults.catalogue:{name}")
