"""MXNet's helpers for tests and scripts; those of symbols and sparse arrays are left out.

Test files write ``from mxnet.test_utils import *`` and rely on the modules that this brings along, so ``__all__`` has
those that are used.
"""

import logging
import sys

import numpy as np
from numpy import testing as npt

import numbagrad as mx
from numbagrad.nd import NDArray, array
from numbagrad.test_utils.comparison import (
    almost_equal,
    assert_allclose,
    assert_almost_equal,
    assert_almost_equal_ignore_nan,
    assert_almost_equal_with_err,
    compare_ndarray_tuple,
    default_atols,
    default_rtols,
    get_atol,
    get_etol,
    get_rtol,
    get_tolerance,
    get_tols,
    np_reduce,
    same,
    same_array,
)
from numbagrad.test_utils.drawing import (
    default_dtype,
    rand_ndarray,
    rand_shape_2d,
    rand_shape_3d,
    rand_shape_nd,
    random_arrays,
    random_sample,
    random_uniform_arrays,
)
from numbagrad.test_utils.numeric import check_numeric_gradient, default_numeric_eps, numeric_grad
from numbagrad.test_utils.optimizers import compare_optimizer
from numbagrad.test_utils.sampling import (
    chi_square_check,
    gen_buckets_probs_with_ppf,
    mean_check,
    var_check,
    verify_generator,
)
from numbagrad.test_utils.surroundings import (
    assert_exception,
    default_context,
    discard_stderr,
    environment,
    list_gpus,
    retry,
    set_default_context,
)

__all__ = [
    "NDArray",
    "almost_equal",
    "array",
    "assert_allclose",
    "assert_almost_equal",
    "assert_almost_equal_ignore_nan",
    "assert_almost_equal_with_err",
    "assert_exception",
    "check_numeric_gradient",
    "chi_square_check",
    "compare_ndarray_tuple",
    "compare_optimizer",
    "default_atols",
    "default_context",
    "default_dtype",
    "default_numeric_eps",
    "default_rtols",
    "discard_stderr",
    "environment",
    "gen_buckets_probs_with_ppf",
    "get_atol",
    "get_etol",
    "get_rtol",
    "get_tolerance",
    "get_tols",
    "list_gpus",
    "logging",
    "mean_check",
    "mx",
    "np",
    "np_reduce",
    "npt",
    "numeric_grad",
    "rand_ndarray",
    "rand_shape_2d",
    "rand_shape_3d",
    "rand_shape_nd",
    "random_arrays",
    "random_sample",
    "random_uniform_arrays",
    "retry",
    "same",
    "same_array",
    "set_default_context",
    "sys",
    "var_check",
    "verify_generator",
]
