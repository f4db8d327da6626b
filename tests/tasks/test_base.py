"""Every task: numbers that do not depend on how the test set is cut into batches."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.training.cases import TASKS, make_data, small_run


@pytest.mark.parametrize("task", TASKS)
def test_every_window_is_tested_and_batch_size_changes_nothing(task: str, tmp_path: Path) -> None:
    run = small_run(task, tmp_path, epochs=1)
    data = make_data(task)
    windows = run.task.windows(run.settings, data)
    model = run.load_model(data)
    results = [
        run.task.evaluate(model, windows, data, run.settings, run.strategy, batch_size=size)
        for size in (1, 7, 64)
    ]
    for result in results:
        assert result.evaluated == len(windows.test)
        for key, value in result.row.items():
            expected = results[0].row[key]
            assert (value is None) == (expected is None)
            assert value is None or value == pytest.approx(expected, rel=1e-5, abs=1e-6), key
