"""Quality of data: what is broken, how far each value can be trusted, what it probably was."""

from sacm.quality import labels as labels
