"""What a protocol found: the findings of any experiment, and the measures of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from sacm.errors import DataError
from sacm.experiments.named.findings import Findings
from sacm.files import read_json
from sacm.metrics.intervals import Record
from sacm_lab.robust.recovered import Recovered


@dataclass(frozen=True)
class RobustFindings(Record):
    """Findings, and the recovered shares where training data were broken."""

    findings: Findings
    recovered: tuple[Recovered, ...]


def read_robust_findings(path: Path) -> RobustFindings:
    """Findings that were written as JSON.

    Raises:
        DataError: The file holds something else.
    """
    try:
        return TypeAdapter(RobustFindings).validate_python(read_json(path))
    except ValidationError as error:
        first = error.errors()[0]
        wrong = ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"].lower())))
        raise DataError(f"{path} holds no findings of a protocol: {wrong}.") from None
