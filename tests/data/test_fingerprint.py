from __future__ import annotations

from dataclasses import replace

import numpy as np

from sacm.data import classification_data, fingerprint, forecasting_data


def test_depends_on_content_and_not_on_notes_or_storage(tmp_path):
    values = np.random.default_rng(0).standard_normal((90, 2)).astype(np.float32)
    data = forecasting_data(values, name="x")
    np.save(tmp_path / "x.npy", values)
    same = fingerprint(forecasting_data(tmp_path / "x.npy", name="x"))
    assert fingerprint(data) == same == fingerprint(replace(data, notes=("found elsewhere",)))
    assert len(same) == 16
    changed = values.copy()
    changed[80, 1] += 1e-6
    others = [
        forecasting_data(changed, name="x"),
        forecasting_data(values, name="x", split=(0.6, 0.2, 0.2)),
        replace(data, targets=values),
    ]
    assert len({same, *(fingerprint(other) for other in others)}) == 4


def test_is_stable():
    """A changed value here means that old runs are no longer recognised."""
    data = forecasting_data(np.arange(30, dtype=np.float32), name="x")
    assert fingerprint(data) == "45a8c0e03a7dc9ae"
    cases = classification_data(np.arange(12.0).reshape(4, 1, 3), ["a", "b", "a", "b"], name="y")
    assert fingerprint(cases) == "df4e5943a9151f7f"
