from __future__ import annotations

import shlex

from sacm.experiments.compare import compare_runs
from sacm.reports.repeat_command import repeat_command
from tests.experiments.cases import write_run


def test_every_setting_that_is_not_a_default(tmp_path):
    runs = [
        write_run(
            tmp_path,
            strategy=strategy,
            seed=seed,
            row={"mse": 1.0},
            data="my data.csv",
            stride=2,
            learning_rate=0.001,
            train_fraction=0.5,
            overrides={"width": 32, "dropout": 0.2},
            size="small",
            compile=True,
        )
        for seed in (1, 2)
        for strategy in ("raw", "sacm(p_max=0.4,gamma=2.0)")
    ]
    command = repeat_command(compare_runs(runs))
    assert shlex.split(command) == [
        *("sacm", "compare", "forecasting", "--data", "my data.csv"),
        *("--backbone", "PatchTST", "--size", "small"),
        *("--strategies", "raw,sacm(p_max=0.4,gamma=2.0)", "--seeds", "1,2"),
        *("--scaling", "shared", "--input-len", "24", "--horizon", "24", "--batch-size", "32"),
        *("--lr", "0.001", "--stride", "2", "--select", "mse", "--train-fraction", "0.5"),
        *("--compile", "--set", "width=32", "--set", "dropout=0.2"),
    ]
