"""The protocols: broken training data, faults at test, both, wrong labels, hidden anomalies."""

from __future__ import annotations

from sacm.experiments.named.experiment import Experiment
from sacm.registry import Registry

ON_CLEAN = "raw on clean"
ORACLE_FLAGS, ORACLE_WEIGHTS = "oracle flags", "oracle weights"
SEEDS = (1, 2, 3, 4, 5)
STRATEGIES = (
    "raw",
    "sacm",
    "fixed(p=0.3)",
    "guard",
    "guard+sacm",
    "weight",
    "expose",
    "selective",
    "trim",
    "huber",
    "tukey",
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
_QUICK = {"learning_rate": 1e-3, "epochs": 15, "patience": 4, "stride": 8}
_STRIDES = {
    "ILI": {"stride": 1},
    "Exchange Rate": {"stride": 4},
    "ETTm1": {"stride": 32},
    "ETTm2": {"stride": 32},
    "Weather": {"stride": 32},
    "ECG": {"stride": 32},
}
_BY_SEED = "The seed of a run also draws the faults, so strategies meet the same ones."

PROTOCOLS: Registry[Experiment] = Registry("protocol", listing="Protocols")
_ALL = (
    Experiment(
        name="T",
        title="Trained on broken rows, tested on clean ones",
        where="protocol T",
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
)
for _one in _ALL:
    PROTOCOLS.register(_one.name)(_one)


def register(experiment: Experiment) -> Experiment:
    """Add a protocol under its own name, for `sacm robust list`, `run` and `report`.

    Raises:
        ArgumentError: If the name is taken.
    """
    return PROTOCOLS.register(experiment.name)(experiment)
