"""The protocols: broken training data, faults at test, both, wrong labels, hidden anomalies."""

from __future__ import annotations

from sacm.registry import Registry
from sacm_lab.experiment import Experiment
from sacm_lab.robust.faults import TESTED

ON_CLEAN = "raw on clean"
GUARD_ON_CLEAN = "guard on clean"  # what repairing costs where nothing is broken
ORACLE_FLAGS, ORACLE_WEIGHTS = "oracle flags", "oracle weights"
PROTECTED, RANDOM = "raw + protect", "random scores"
# Rows of reference beside the strategies: clean data, oracles, random scores.
REFERENCES = (ON_CLEAN, GUARD_ON_CLEAN, ORACLE_FLAGS, ORACLE_WEIGHTS, RANDOM)
SEEDS = (1, 2, 3, 4, 5)
STRATEGIES = (
    "raw",
    "sacm",
    "fixed(p=0.3)",
    "guard",
    "guard+sacm",
    "clean(how=hampel)",
    "clean",
    "clean(how=tsclean)",
    "expose(consistency=1)",
    "selective",
    "trim",
    "huber",
    "robust_tsf",
    "reld",
    "co_teaching",
    "augment",
    "pgd",
    "ensemble",
    "ema",
    "smoothing",
)


# Settings that fit small networks into minutes; every option of the command line overrides them.
def _every(rows: int) -> dict[str, int]:
    """Every so many training and validation windows; test windows are all there."""
    return {"stride": rows, "validation_stride": rows}


_QUICK = {"learning_rate": 1e-3, "epochs": 15, "patience": 4, **_every(8)}
_STRIDES = {
    "ILI": _every(1),
    "Exchange Rate": _every(4),
    "ETTm1": _every(32),
    "ETTm2": _every(32),
    "Weather": _every(32),
    "ECG": _every(32),
}
_BY_SEED = "The seed of a run also draws the faults, so strategies meet the same ones."

_SEVERITIES = (
    "Test inputs have faults, one a window of uniform severity; targets never. At most 2,000 test "
    "windows, the same for every run. D: error under a fault over the error on clean inputs."
)
_ALL_ROWS = {**_QUICK, "split": (0.6, 0.2, 0.2), **_every(4), "epochs": 25, "patience": 6}
_FAULT_METRICS = (
    "mean_fault_mse",
    "worst_degradation",
    "clean_mse",
    *(f"degradation_{fault}" for fault in TESTED),
    "train_seconds",
)

PROTOCOLS: Registry[Experiment] = Registry("protocol")
_ALL = (
    Experiment(
        name="training",
        title="Trained on broken rows, tested on clean ones",
        where="broken training rows",
        task="forecasting",
        datasets=("ETTh1", "ETTm1", "Exchange Rate", "ILI"),
        backbones=("iTransformer", "PatchTST"),
        strategies=STRATEGIES,
        horizons=(96,),
        seeds=SEEDS,
        vary={"contamination": ("mix(0.3)", "tsf_gaussian(0.3)")},
        fixed=_QUICK,
        by_data=_STRIDES,
        metrics=("mse", "mae", "mse_last", "mae_last", "train_seconds"),
        rows=("data", "backbone", "contamination"),
        references={
            ON_CLEAN: {"strategy": "raw", "contamination": ""},
            GUARD_ON_CLEAN: {"strategy": "guard", "contamination": ""},
            ORACLE_FLAGS: {"strategy": "oracle"},
            ORACLE_WEIGHTS: {"strategy": "oracle(repair=false)"},
        },
        checks=("last",),
        notes=(
            "Training and validation rows are broken, inputs and targets alike; test rows are "
            "clean. Errors are in deviations of the clean training rows, over all targets.",
            _BY_SEED,
        ),
    ),
    Experiment(
        name="test",
        title="Faults in test inputs (SensorFault-Bench)",
        where="faults at test, SensorFault-Bench (arXiv:2605.10822)",
        task="forecasting",
        datasets=("ETTh1", "Weather", "Exchange Rate"),
        backbones=("PatchTST", "iTransformer", "TimeMixer"),
        strategies=(
            "raw",
            "sacm",
            "guard",
            "guard+sacm",
            "expose(consistency=1)",
            "augment",
            "pgd",
            "ensemble",
            "guard+ensemble",
            "smoothing",
        ),
        horizons=(96,),
        seeds=SEEDS,
        fixed=_ALL_ROWS,
        by_data={"Weather": _every(32)},
        metrics=_FAULT_METRICS,
        references={PROTECTED: {"strategy": "raw"}},
        checks=("faults",),
        own_checks={PROTECTED: ("protect",)},
        notes=(
            "Trained on clean rows; all rows, split .6/.2/.2 in time.",
            _SEVERITIES,
            f"{PROTECTED}: the network of raw behind a window guard, without retraining.",
        ),
    ),
    Experiment(
        name="both",
        title="Trained on broken rows, tested with faults in the inputs",
        where="broken training rows and faults at test",
        task="forecasting",
        datasets=("ETTh1", "Exchange Rate"),
        backbones=("iTransformer",),
        strategies=STRATEGIES,
        horizons=(96,),
        seeds=SEEDS,
        vary={"contamination": ("mix(0.3)",)},
        fixed=_QUICK,
        by_data=_STRIDES,
        metrics=_FAULT_METRICS,
        rows=("data", "backbone", "contamination"),
        references={
            ON_CLEAN: {"strategy": "raw", "contamination": ""},
            PROTECTED: {"strategy": "raw"},
        },
        checks=("faults",),
        own_checks={PROTECTED: ("protect",)},
        notes=(
            "Training and validation rows are broken as in the protocol `training`.",
            _SEVERITIES,
            _BY_SEED,
        ),
    ),
    Experiment(
        name="labels",
        title="Wrong labels in classification",
        where="wrong labels",
        task="classification",
        datasets=(
            "BasicMotions",
            "Epilepsy",
            "NATOPS",
            "UWaveGestureLibrary",
            "JapaneseVowels",
        ),
        backbones=("InceptionTime", "iTransformer"),
        strategies=("raw", "labels", "sacm", "fixed(p=0.3)", "gce", "trim", "co_teaching", "ema"),
        seeds=(1, 2, 3),
        vary={"contamination": ("symmetric(0.3)", "symmetric(0.5)", "asymmetric(0.4)")},
        fixed={"learning_rate": 1e-3, "epochs": 30, "patience": 30, "watch": True},
        metrics=("accuracy", "accuracy_last_ten", "macro_f1", "train_seconds"),
        rows=("data", "backbone", "contamination"),
        references={ON_CLEAN: {"strategy": "raw", "contamination": ""}},
        notes=(
            "Training and validation labels are wrong, test labels right. Accuracy is that of the "
            "epoch that the wrong validation labels choose; last ten: mean over the last ten "
            "epochs.",
            _BY_SEED,
        ),
    ),
    Experiment(
        name="anomalies",
        title="Anomalies hidden in the training rows of detectors",
        where="hidden anomalies",
        task="anomaly",
        datasets=("MSL", "SMD@machine-1-1", "SMD@machine-2-1"),
        backbones=("TranAD", "iTransformer"),
        strategies=("raw", "sacm", "fixed(p=0.3)", "guard", "trim", "loe", "ema"),
        seeds=(1, 2, 3),
        vary={"contamination": ("anomalies(0.05)", "anomalies(0.1)")},
        fixed={"learning_rate": 1e-3, "epochs": 5, "patience": 3, "stride": 20},
        metrics=("vus_pr", "auc_pr", "f1_best", "train_seconds"),
        rows=("data", "backbone", "contamination"),
        references={
            ON_CLEAN: {"strategy": "raw", "contamination": ""},
            RANDOM: {"strategy": "raw"},
        },
        own_checks={RANDOM: ("random",)},
        notes=(
            "Stretches of 10 to 99 training rows are shifted, noisy, drifting, stuck or scaled in "
            "one to half of the channels. Nothing is point-adjusted.",
            _BY_SEED,
        ),
    ),
)
for _protocol in _ALL:
    PROTOCOLS.register(_protocol.name)(_protocol)
