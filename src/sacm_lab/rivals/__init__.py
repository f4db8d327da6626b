"""Training methods that the method and the guard are compared with, one file each.

Each is imported when it is first used.
"""

from __future__ import annotations

from sacm.registry import STRATEGIES

RIVALS = {
    "augment": "augment:Augment",
    "clean": "clean:Clean",
    "co_teaching": "co_teaching:CoTeaching",
    "ema": "ema:WeightAverage",
    "ensemble": "ensemble:Ensemble",
    "expose": "augment:Expose",
    "gce": "gce:GeneralisedCrossEntropy",
    "hard_denoise": "controls:HardDenoise",
    "huber": "huber:Huber",
    "learned_global": "controls:LearnedGlobal",
    "loe": "loe:LatentOutlierExposure",
    "oracle": "oracle:Oracle",
    "pgd": "pgd:PGD",
    "reld": "reld:ReLD",
    "robust_tsf": "robust_tsf:RobustTSF",
    "selective": "selective:Selective",
    "smoothing": "smoothing:Smoothing",
    "trim": "trim:Trim",
}


def register() -> None:
    """Make the rivals available by name."""
    for name, place in RIVALS.items():
        STRATEGIES.register(name)(f"sacm_lab.rivals.{place}")
