from __future__ import annotations

import copy
import pickle
import random
from pathlib import Path

import numpy as np
import pytest
import sklearn.exceptions
import torch
from sklearn.base import clone
from sklearn.utils import estimator_checks

from sacm.errors import ArgumentError, SACMError
from sacm.settings import READING, RunSettings
from sacm.tasks import get_task
from tests.estimators.cases import CASES, Case, every_estimator

# Settings of a run that an estimator has no use for, and why.
LEFT_OUT = {
    "Forecaster": set(),
    "Classifier": {"input_len", *READING}
    - {"target"},  # cases come as arrays, whose length is theirs
    # Its rows are all for training, without a grid; `score` is the method, `score_kind` the kind.
    "AnomalyDetector": {
        *("id", "frequency", "resample", "split", "scaling", "score"),
    },
}


@pytest.fixture(scope="module", params=CASES, ids=str)
def fitted(request: pytest.FixtureRequest) -> tuple[Case, object]:
    return request.param, request.param.fitted()


@every_estimator
@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_parameters_default_constructible,
        estimator_checks.check_no_attributes_set_in_init,
        estimator_checks.check_get_params_invariance,
        estimator_checks.check_set_params,
        estimator_checks.check_estimator_repr,
    ],
    ids=lambda check: check.__name__,
)
def test_scikit_learn_agrees(case: Case, check: object) -> None:
    check(str(case), case.make())  # type: ignore[operator]  # a list of functions


@every_estimator
def test_clone_has_the_parameters_and_nothing_learnt(case: Case) -> None:
    original = case.make(seed=3, overrides={"dropout": 0.2})
    copied = clone(original)
    assert copied is not original
    assert copied.get_params() == original.get_params()
    assert not hasattr(copied, "model_")


@every_estimator
def test_not_fitted_is_one_sentence(case: Case) -> None:
    estimator = case.make()
    for question in case.questions:
        method = getattr(estimator, question)
        arguments = [] if question.startswith("predict_interval") else list(case.arguments()[:1])
        with pytest.raises(sklearn.exceptions.NotFittedError, match="call fit first") as caught:
            method(*arguments)
        assert isinstance(caught.value, SACMError)
    with pytest.raises(sklearn.exceptions.NotFittedError):
        estimator.save("nowhere")


@every_estimator
def test_seed_decides_everything_and_touches_nothing(case: Case) -> None:
    torch.manual_seed(5)
    np.random.seed(5)
    random.seed(5)
    before = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()
    first = case.fitted(seed=1)
    after = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()
    assert torch.equal(before[0], after[0])
    assert before[1:] == after[1:]
    answers = [
        case.answer(estimator, case.arguments())
        for estimator in (first, case.fitted(seed=1), case.fitted(seed=2))
    ]
    assert np.array_equal(answers[0], answers[1])
    assert not np.array_equal(answers[0], answers[2])


def test_saved_and_loaded_says_the_same(fitted: tuple[Case, object], tmp_path: Path) -> None:
    case, estimator = fitted
    estimator.save(tmp_path / "saved")
    loaded = type(estimator).load(tmp_path / "saved")
    assert loaded.get_params() == estimator.get_params()
    assert loaded.history_ == estimator.history_
    ours, theirs = (case.answer(one, case.arguments()) for one in (estimator, loaded))
    assert np.array_equal(ours, theirs)
    suffixes = {path.suffix for path in (tmp_path / "saved").iterdir()}
    assert suffixes == {".json", ".safetensors"}
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]


def test_copies_say_the_same(fitted: tuple[Case, object]) -> None:
    case, estimator = fitted
    expected = case.answer(estimator, case.arguments())
    for copied in (copy.deepcopy(estimator), pickle.loads(pickle.dumps(estimator))):
        assert np.array_equal(case.answer(copied, case.arguments()), expected)


def test_wrong_number_of_channels(fitted: tuple[Case, object]) -> None:
    case, estimator = fitted
    with pytest.raises(ArgumentError, match=r"on 2 channels but .* 3"):
        case.answer(estimator, case.arguments(channels=3))


def test_loaded_can_be_fitted_again_on_other_data(
    fitted: tuple[Case, object], tmp_path: Path
) -> None:
    case, estimator = fitted
    estimator.save(tmp_path / "saved")
    again = type(estimator).load(tmp_path / "saved").fit(*case.arguments(channels=3))
    assert again.n_features_in_ == 3
    assert len(case.answer(again, case.arguments(channels=3)))


def test_save_replaces_its_own_and_nothing_else(
    fitted: tuple[Case, object], tmp_path: Path
) -> None:
    case, estimator = fitted
    estimator.save(tmp_path / "saved")
    estimator.save(tmp_path / "saved")
    assert np.array_equal(
        case.answer(type(estimator).load(tmp_path / "saved"), case.arguments()),
        case.answer(estimator, case.arguments()),
    )
    (tmp_path / "letters").mkdir()
    with pytest.raises(ArgumentError, match="no saved estimator"):
        estimator.save(tmp_path / "letters")


def test_failed_save_leaves_the_old_one(fitted: tuple[Case, object], tmp_path: Path) -> None:
    case, estimator = fitted
    estimator.save(tmp_path / "saved")
    unwritable = copy.deepcopy(estimator).set_params(overrides={"width": object()})
    with pytest.raises(ArgumentError, match="a parameter is no plain value"):
        unwritable.save(tmp_path / "saved")
    unwritable = copy.deepcopy(estimator)
    unwritable.history_ = [{"epoch": float("nan")}]  # which JSON has no word for
    with pytest.raises(ValueError, match="not JSON compliant"):
        unwritable.save(tmp_path / "saved")
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]
    assert np.array_equal(
        case.answer(type(estimator).load(tmp_path / "saved"), case.arguments()),
        case.answer(estimator, case.arguments()),
    )


def test_load_of_something_else(fitted: tuple[Case, object], tmp_path: Path) -> None:
    _, estimator = fitted
    with pytest.raises(ArgumentError, match="is not a saved estimator"):
        type(estimator).load(tmp_path)
    estimator.save(tmp_path / "saved")
    other = next(type(case.make()) for case in CASES if type(case.make()) is not type(estimator))
    with pytest.raises(ArgumentError, match=f"load it with sacm.{type(estimator).__name__}.load"):
        other.load(tmp_path / "saved")
    (tmp_path / "saved" / "best.safetensors").write_bytes(b"damaged")
    with pytest.raises(SACMError, match="is damaged"):
        type(estimator).load(tmp_path / "saved")
    for text in ("", "{}"):
        (tmp_path / "saved" / "estimator.json").write_text(text)
        with pytest.raises(SACMError, match="is damaged"):
            type(estimator).load(tmp_path / "saved")


@every_estimator
def test_run_folder_is_kept_if_asked_for(case: Case, tmp_path: Path) -> None:
    first = case.fitted(folder=tmp_path)
    runs = [path for path in tmp_path.iterdir() if (path / "metrics.json").exists()]
    assert len(runs) == 1
    stamp = (runs[0] / "metrics.json").stat().st_mtime_ns
    second = case.fitted(folder=str(tmp_path))
    assert (runs[0] / "metrics.json").stat().st_mtime_ns == stamp
    answers = [case.answer(one, case.arguments()) for one in (first, second)]
    assert np.array_equal(*answers)


@every_estimator
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"backbone": "iTransformr"}, "Did you mean 'iTransformer'"),
        ({"strategy": "sack"}, "there is no strategy"),
        ({"epochs": 0}, "epochs = 0"),
        ({"learning_rate": -1.0}, "learning_rate = -1.0"),
        ({"size": "huge"}, "size = 'huge'"),
        ({"overrides": {"widht": 3}}, "no setting 'widht'"),
    ],
)
def test_wrong_parameter_is_one_sentence(
    case: Case, parameters: dict[str, object], message: str
) -> None:
    estimator = case.make().set_params(**parameters)
    with pytest.raises(ArgumentError, match=message):
        estimator.fit(*case.arguments())


@every_estimator
def test_defaults_are_those_of_the_command_line(case: Case) -> None:
    estimator = type(case.make())
    task = get_task(estimator._task)
    found = estimator().get_params()
    assert found["strategy"] == task.default_strategy
    # Candidates compete to forecast.
    assert found["backbone"] == (None if task.name == "forecasting" else task.default_backbone)
    assert found["accelerator"] == "auto"
    settings = {name: field.default for name, field in RunSettings.model_fields.items()}
    settings |= {"strategy": found["strategy"], "backbone": found["backbone"], "overrides": None}
    shared = found.keys() & settings.keys()
    assert {name: found[name] for name in shared} == {name: settings[name] for name in shared}
    left_out = settings.keys() - shared - {*task.unused, "task", "data", "contamination", "watch"}
    assert left_out == LEFT_OUT[estimator.__name__] - {*task.unused}
