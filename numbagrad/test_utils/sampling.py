"""Whether a random generator has the distribution that it should have."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Generator = Callable[[int], Any]


def gen_buckets_probs_with_ppf(
    ppf: Callable[[float], float], nbuckets: int
) -> tuple[list[tuple[float, float]], list[float]]:
    """Buckets of equal probability, and their probabilities, from the inverse distribution function `ppf`."""
    assert nbuckets > 0, "at least one bucket"
    bounds = [ppf(i / nbuckets) for i in range(nbuckets + 1)]
    return list(itertools.pairwise(bounds)), [1.0 / nbuckets] * nbuckets


def mean_check(generator: Generator, mu: float, sigma: float, nsamples: int = 1000000) -> bool:
    """Whether the mean of samples is within three standard errors, ``3 sigma / sqrt(nsamples)``, of `mu`."""
    mean = np.asarray(generator(nsamples), np.float64).mean()
    return bool(abs(mean - mu) < 3 * sigma / np.sqrt(nsamples))


def var_check(generator: Generator, sigma: float, nsamples: int = 1000000) -> bool:
    """Whether the variance of normal samples is within three of its standard errors of ``sigma**2``."""
    variance = np.asarray(generator(nsamples), np.float64).var(ddof=1)
    return bool(abs(variance - sigma**2) < 3 * sigma**2 * np.sqrt(2 / (nsamples - 1)))


def _counts(samples: np.ndarray, buckets: Sequence[Any]) -> np.ndarray:
    """How many samples lie in each bucket, and last how many in none."""
    if isinstance(buckets[0], (list, tuple)):
        # As the samples are rounded, so are the bounds; the upper one belongs to the last bucket.
        kind = samples.dtype if samples.dtype.kind == "f" else np.dtype(np.float64)
        low, high = np.asarray(buckets, kind).T
        assert (low <= high).all(), "the bounds of a bucket must ascend"
        assert (high[:-1] <= low[1:]).all(), "buckets must ascend and not overlap"
        at = np.minimum(np.searchsorted(low, samples, side="right"), len(buckets)) - 1
        inside = (at >= 0) & ((samples < high[at]) | ((samples == high[-1]) & (at == len(buckets) - 1)))
        found = np.bincount(at[inside], minlength=len(buckets))
    else:
        found = np.array([(samples == value).sum() for value in buckets])
    return np.append(found, samples.size - found.sum())


def chi_square_check(
    generator: Generator, buckets: list[Any], probs: Sequence[float], nsamples: int = 1000000
) -> tuple[float, np.ndarray, np.ndarray]:
    """Pearson's chi-square test of samples against the probabilities of buckets.

    Parameters
    ----------
    generator : callable
        ``generator(n)`` returns n independent samples.
    buckets : list
        Pairs of bounds that ascend and do not overlap; or the values of a discrete distribution.
    probs : sequence of float
        The probability of each. What is missing to 1 is that of all other values; where nothing is missing, a sample
        outside of all buckets refutes the distribution.

    Returns
    -------
    p : float
        The probability of a deviation at least as large.
    observed, expected : numpy.ndarray
        How many samples fell, and should fall, into each bucket.
    """
    assert len(buckets) == len(probs), f"{len(buckets)} buckets but {len(probs)} probabilities"
    samples = np.asarray(generator(nsamples)).reshape(-1)
    observed = _counts(samples, buckets)
    rest = 1.0 - float(np.sum(probs))
    expected = samples.size * np.append(probs, rest if rest > 1e-6 else 0.0)
    expected *= samples.size / expected.sum()
    possible = expected > 0
    if observed[~possible].any():
        return 0.0, observed[:-1], expected[:-1]
    statistic = ((observed - expected)[possible] ** 2 / expected[possible]).sum()
    from scipy.special import chdtrc  # takes a tenth of numbagrad's own import

    return float(chdtrc(max(1, possible.sum() - 1), statistic)), observed[:-1], expected[:-1]


def verify_generator(
    generator: Generator,
    buckets: list[Any],
    probs: Sequence[float],
    nsamples: int = 1000000,
    nrepeat: int = 5,
    success_rate: float = 0.2,
    alpha: float = 0.05,
) -> list[float]:
    """Repeat :func:`chi_square_check`; at least a share `success_rate` of the p values must be above `alpha`.

    Returns
    -------
    list of float
        The p values.

    Raises
    ------
    AssertionError
        With the p values, and the counts of the last test.
    """
    values = []
    for _ in range(nrepeat):
        p, observed, expected = chi_square_check(generator, buckets, probs, nsamples)
        values.append(p)
    if sum(p > alpha for p in values) < nrepeat * success_rate:
        raise AssertionError(
            f"the samples do not have the distribution: p values {values}; in the last test {observed.tolist()} "
            f"samples in the buckets {buckets}, expected {expected.tolist()}"
        )
    return values
