"""The example service, asked by a real client."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sacm import Predictor
from tests.scripts import load_script
from tests.training.cases import small_run

testclient = pytest.importorskip("fastapi.testclient", reason="needs the `serving` extra")
APP = Path(__file__).parents[2] / "examples" / "serving" / "app.py"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_run("forecasting", tmp_path_factory.mktemp("served"), epochs=1).folder


@pytest.fixture(scope="module")
def client(run: Path) -> Iterator[Any]:
    module = load_script(APP)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SACM_RUN", str(run))
        with testclient.TestClient(module.app) as opened:
            yield opened


def test_two_hundred_requests_at_once_are_all_answered_right(client: Any, run: Path) -> None:
    predictor = Predictor.load(run)
    length, channels = predictor.shape.input_len, predictor.shape.channels
    windows = np.random.default_rng(0).normal(size=(200, length, channels))
    expected = predictor.predict(windows.astype(np.float32))

    def ask(window: np.ndarray) -> Any:
        return client.post("/predict", json={"rows": window.tolist()})

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(ask, windows))
    assert {answer.status_code for answer in answers} == {200}
    found = np.array([answer.json()["forecast"] for answer in answers])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_missing_values_are_filled_and_the_model_is_described(client: Any, run: Path) -> None:
    shape = Predictor.load(run).shape
    about = client.get("/model").json()
    assert (about["task"], about["rows"]) == ("forecasting", shape.input_len)
    rows: list[list[float | None]] = [[0.1] * shape.channels for _ in range(shape.input_len)]
    for row in rows[: shape.input_len // 4]:
        row[0] = None
    with pytest.warns(match="interpolated|repaired|missing"):
        assert client.post("/predict", json={"rows": rows}).status_code == 200


@pytest.mark.parametrize(
    ("rows", "message"),
    [([[0.0]], "channels"), ([[1.0, 2.0], [1.0]], "inhomogeneous"), ([["x"]], "valid number")],
)
def test_what_cannot_be_answered_is_one_sentence(client: Any, rows: Any, message: str) -> None:
    answer = client.post("/predict", json={"rows": rows})
    assert answer.status_code == 422
    assert message in str(answer.json()["detail"])
