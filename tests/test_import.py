from __future__ import annotations

import subprocess
import sys

import pytest


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture(scope="module")
def brought_in() -> set[str]:
    """Modules that the core of sacm adds to those of torch and NumPy."""
    code = (
        "import sys, torch, numpy; before = set(sys.modules); import sacm; sacm.attach; "
        "sacm.score_windows; sacm.theory; print(*sorted(set(sys.modules) - before))"
    )
    return set(run(code).split())


def test_import_brings_in_nothing_but_torch_and_numpy(brought_in: set[str]) -> None:
    packages = {name.partition(".")[0] for name in brought_in}
    assert packages - sys.stdlib_module_names - {"torch", "numpy"} == {"sacm"}


def test_import_leaves_the_heavy_parts_for_later(brought_in: set[str]) -> None:
    folders = {name.split(".")[1] for name in brought_in if name.startswith("sacm.")}
    assert folders == {"core", "inject", "theory", "errors"}


def test_import_does_not_wake_the_compiler(brought_in: set[str]) -> None:
    heavy = ("torch._dynamo", "torch._inductor", "torch.onnx", "torch.distributed.tensor")
    assert [name for name in brought_in if name.startswith(heavy)] == []


def test_every_public_name_is_found_and_torch_waits_until_one_is_used() -> None:
    code = "import sys, sacm; print('torch' in sys.modules)"
    assert run(code).strip() == "False"
    import sacm

    for name in sacm.__all__:
        assert getattr(sacm, name) is not None
    assert set(sacm.__all__) <= set(dir(sacm))


def test_an_unknown_name_is_an_attribute_error() -> None:
    import sacm

    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = sacm.nothing


def test_labels_are_reached_from_the_package_alone() -> None:
    code = "import sacm; print(sacm.quality.labels.find_wrong_labels.__name__)"
    assert run(code).strip() == "find_wrong_labels"
