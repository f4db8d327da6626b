from __future__ import annotations

from pathlib import Path

import pytest

from sacm.experiments.grid import Grid
from sacm.experiments.grid_points import Point, Selection
from sacm.experiments.jobs import execute, record_job_failure
from sacm.training import Hardware, train
from tests.experiments.tiny import SMALL, groups_of, ili

pytestmark = pytest.mark.usefixtures("stand_in")


def test_one_job_a_strategy_with_complete_settings(tmp_path: Path):
    (group,) = groups_of(tmp_path, ili(seed=5))
    assert [job.settings.strategy for job in group.jobs] == ["raw", "sacm"]
    assert len({job.run_id for job in group.jobs}) == 2
    for job in group.jobs:
        chosen = job.settings
        assert (chosen.size, chosen.seed, chosen.input_len, chosen.horizon) == ("small", 5, 24, 24)
        assert (chosen.batch_size, chosen.select, chosen.stride) == (32, "mae", 40)


def test_a_job_is_named_as_training_names_its_run(tmp_path: Path):
    (group,) = groups_of(tmp_path, ili(strategies=("raw",)))
    (job,) = group.jobs
    run = train(job.settings, folder=tmp_path, hardware=Hardware(show_progress=False))
    assert run.folder.name == job.run_id
    assert group.statuses(tmp_path)[0].state == "done"


def test_the_size_that_was_begun_is_taken_before_the_preferred_one(tmp_path: Path):
    point = ili(strategies=("raw", "sacm"), epochs=1)
    either = Selection(sizes=("paper", "small"))
    assert Grid(either, tmp_path).groups([point])[0].size == "paper"
    execute(groups_of(tmp_path, point)[0].jobs[0], tmp_path)
    assert Grid(either, tmp_path).groups([point])[0].size == "small"
    assert Grid(Selection(), tmp_path).groups([point])[0].size == "paper"


def test_one_failed_run_does_not_hide_a_pair_of_another_size(tmp_path: Path):
    point = ili(epochs=1)
    either = Selection(sizes=("paper", "small"))
    paper = Grid(Selection(), tmp_path).groups([point])[0].jobs
    small = groups_of(tmp_path, point)[0].jobs
    record_job_failure(paper[0], tmp_path, "the loss is nan.", killed=False)
    assert Grid(either, tmp_path).groups([point])[0].size == "paper"
    execute(small[0], tmp_path)
    assert Grid(either, tmp_path).groups([point])[0].size == "small"
    execute(paper[0], tmp_path)
    assert Grid(either, tmp_path).groups([point])[0].size == "paper"  # as much of the preferred
    execute(small[1], tmp_path)
    assert Grid(either, tmp_path).groups([point])[0].size == "small"


def test_named_backbones_are_small(tmp_path: Path):
    selection = Selection(small=("iTransformer",))
    (group,) = Grid(selection, tmp_path).groups([ili()])
    assert (group.size, group.jobs[0].settings.size) == ("small", "small")
    assert selection.sizes_of("PatchTST") == ("paper",)


@pytest.mark.parametrize(("data", "target"), [("Weather", None), ("ILI", "Weather")])
def test_without_its_data_a_group_has_no_jobs(tmp_path: Path, data, target):
    place = ili()
    point = Point({**place.keys, "data": data}, {**place.settings, "data": data}, ("raw",), target)
    (group,) = Grid(SMALL, tmp_path).groups([point])
    assert (group.absent, group.jobs, group.statuses(tmp_path)) == ("Weather", (), ())


def test_generated_data_are_always_there(tmp_path: Path):
    place = ili()
    here = {"data": "Synth-12@0.1", "horizon": 96}
    point = Point({**place.keys, **here}, {**place.settings, **here}, ("raw",))
    (group,) = Grid(SMALL, tmp_path).groups([point])
    assert group.absent is None
    assert group.jobs[0].run_id.startswith("Synth-12@0.1_iTransformer_raw_seed1_")
