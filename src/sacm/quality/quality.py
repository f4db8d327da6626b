"""Quality: the result of an inspection, with what people look at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sacm.quality.guard import refuse_folder
from sacm.quality.record import QualityRecord
from sacm.quality.words import describe_quality, summary_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class Quality(QualityRecord):
    """What is broken in a table, where, and what it probably was.

    Made by `sacm.inspect`. Beside what `QualityRecord` holds (`flags`, `reliability`, `weights`,
    `repaired`, `uncertainty`, `events`), it prints, draws and writes a page.

    Example:
        >>> import numpy as np, sacm
        >>> quality = sacm.inspect(np.random.default_rng(0).normal(size=(300, 1)))
        >>> quality.flags.shape
        (300, 1)
    """

    def sentences(self) -> list[str]:
        """What was found, in plain words; the first sentence is the verdict."""
        return describe_quality(self)

    def __str__(self) -> str:
        """The summary as text."""
        return summary_text(self)

    def summary(self) -> None:
        """Print what was found as a table."""
        print(self)

    def to_frame(self) -> pd.DataFrame:
        """One row for each event: channel, kind, rows, times, severity."""
        import pandas as pd

        names = ("series", "channel", "kind", "first", "last", "rows", "first_time", "last_time")
        lines = [{n: getattr(each, n) for n in (*names, "severity")} for each in self.events]
        frame = pd.DataFrame(lines, columns=[*names, "severity"])
        unused = [] if self.subject.times is not None else ["first_time", "last_time"]
        unused += ["series"] if len(set(self.subject.labels)) == 1 else []
        return frame.drop(columns=unused)

    def plot(self) -> Figure:
        """Draw all channels over time, coloured by what was found."""
        from sacm.quality.figures import draw_overview

        return draw_overview(self)

    def report(self, path: str | Path) -> None:
        """Write one self-contained HTML page: overview, worst events with their repair, shares.

        Args:
            path: The file to write, such as quality.html.

        Raises:
            SACMError: The file cannot be written.
        """
        from sacm.files import write_atomically
        from sacm.quality.page import quality_page

        refuse_folder(Path(path))
        text = quality_page(self)
        write_atomically(Path(path), lambda file: file.write_text(text, encoding="utf-8"))
