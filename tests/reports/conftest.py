from __future__ import annotations

import pytest

from tests.reports.cases import DATA, Case, trained


@pytest.fixture(scope="session")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    """Raw against sacm, for each task."""
    folder = tmp_path_factory.mktemp("reports")
    return {task: trained(task, ["raw", "sacm"], folder / task) for task in DATA}
