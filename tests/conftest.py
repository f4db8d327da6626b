from __future__ import annotations

import hypothesis
import torch

# One thread: small tensors gain nothing from more, and tests may run side by side.
torch.set_num_threads(1)
hypothesis.settings.register_profile("sacm", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("sacm")
