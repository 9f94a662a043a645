"""What holds for every test: seeded generators, and no recording state left behind.

The kernel cache is the one that `NUMBAGRAD_CACHE_DIR` names or the user's own: tests pass cold and warm.
"""

import importlib.util
import random

import hypothesis
import numpy as np
import pytest

# A cold kernel cache makes first examples slow, and a failure must come again.
hypothesis.settings.register_profile("numbagrad", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("numbagrad")

SEED = 20240229
HAS_AUTOGRAD = importlib.util.find_spec("numbagrad.autograd") is not None
HAS_RANDOM = importlib.util.find_spec("numbagrad.random") is not None


@pytest.fixture(autouse=True)
def seeds():
    """Seed Python's, NumPy's and our own global generators."""
    random.seed(SEED)
    np.random.seed(SEED)
    if HAS_RANDOM:
        importlib.import_module("numbagrad.random").seed(SEED)


@pytest.fixture(autouse=True)
def state_is_restored():
    """Fail a test that leaves recording or training on, and mend it for the next one."""
    yield
    if not HAS_AUTOGRAD:
        return
    autograd = importlib.import_module("numbagrad.autograd")
    left = autograd.is_recording(), autograd.is_training()
    if any(left):
        autograd.set_recording(False)
        autograd.set_training(False)
    assert left == (False, False), "the test left (recording, training) on"
