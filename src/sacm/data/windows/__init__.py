"""Windows of a data set: cut, split, batched."""
