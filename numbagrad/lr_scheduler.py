"""Learning rates as functions of the number of updates made."""

import itertools
import math
from typing import Any


class LRScheduler:
    """A learning rate after `num_update` updates, with a warm-up before it.

    Parameters
    ----------
    base_lr : float
        The rate that the schedule starts from.
    warmup_steps : int
        How many updates the warm-up takes.
    warmup_begin_lr : float
        The rate it begins with.
    warmup_mode : {"linear", "constant"}

    Raises
    ------
    ValueError
        For a beginning above `base_lr`, negative steps or another mode.
    """

    def __init__(
        self, base_lr: float = 0.01, warmup_steps: int = 0, warmup_begin_lr: float = 0, warmup_mode: str = "linear"
    ) -> None:
        if warmup_begin_lr > base_lr:
            raise ValueError(f"base_lr {base_lr} must not be below warmup_begin_lr {warmup_begin_lr}")
        if warmup_steps < 0:
            raise ValueError(f"warmup_steps must not be negative, got {warmup_steps}")
        if warmup_mode not in ("linear", "constant"):
            raise ValueError(f"warmup_mode must be linear or constant, not {warmup_mode!r}")
        self.base_lr = base_lr
        self.warmup_steps = warmup_steps
        self.warmup_begin_lr = warmup_begin_lr
        self.warmup_final_lr = base_lr
        self.warmup_mode = warmup_mode

    def get_warmup_lr(self, num_update: int) -> float:
        """The rate during the warm-up."""
        if self.warmup_mode == "constant":
            return self.warmup_begin_lr
        share = num_update / self.warmup_steps
        return self.warmup_begin_lr + (self.warmup_final_lr - self.warmup_begin_lr) * share

    def __call__(self, num_update: int) -> float:
        """The rate for update number `num_update`, counted from 1."""
        raise NotImplementedError(f"{type(self).__name__} must define __call__")


class FactorScheduler(LRScheduler):
    """The rate times `factor` every `step` updates, down to `stop_factor_lr`."""

    def __init__(
        self, step: int, factor: float = 1, stop_factor_lr: float = 1e-8, base_lr: float = 0.01, **warmup: Any
    ) -> None:
        super().__init__(base_lr, **warmup)
        if step < 1:
            raise ValueError(f"step must be at least 1, got {step}")
        if factor > 1:
            raise ValueError(f"factor must not be above 1, got {factor}")
        self.step = step
        self.factor = factor
        self.stop_factor_lr = stop_factor_lr
        self.count = 0

    def __call__(self, num_update: int) -> float:
        """The rate for update number `num_update`."""
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        while num_update > self.count + self.step:
            self.count += self.step
            self.base_lr = max(self.base_lr * self.factor, self.stop_factor_lr)
        return self.base_lr


class MultiFactorScheduler(LRScheduler):
    """The rate times `factor` after each of the update numbers in `step`."""

    def __init__(self, step: list[int], factor: float = 1, base_lr: float = 0.01, **warmup: Any) -> None:
        super().__init__(base_lr, **warmup)
        if not isinstance(step, list) or not step or any(s < 1 for s in step):
            raise ValueError(f"step must be a list of update numbers from 1, got {step}")
        if any(b <= a for a, b in itertools.pairwise(step)):
            raise ValueError(f"step must increase, got {step}")
        if factor > 1:
            raise ValueError(f"factor must not be above 1, got {factor}")
        self.step = step
        self.factor = factor
        self.cur_step_ind = 0

    def __call__(self, num_update: int) -> float:
        """The rate for update number `num_update`."""
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        while self.cur_step_ind < len(self.step) and num_update > self.step[self.cur_step_ind]:
            self.cur_step_ind += 1
            self.base_lr *= self.factor
        return self.base_lr


class _Decay(LRScheduler):
    """From the base rate to `final_lr` over `max_update` updates, along :meth:`shape`."""

    def __init__(self, max_update: int, base_lr: float = 0.01, final_lr: float = 0, **warmup: Any) -> None:
        super().__init__(base_lr, **warmup)
        if not isinstance(max_update, int) or max_update < 1:
            raise ValueError(f"max_update must be a positive int, got {max_update}")
        self.base_lr_orig = base_lr
        self.max_update = max_update
        self.final_lr = final_lr
        self.max_steps = max_update - self.warmup_steps

    def shape(self, share: float) -> float:
        """What is left of the decay after `share` of it."""
        raise NotImplementedError

    def __call__(self, num_update: int) -> float:
        """The rate for update number `num_update`."""
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        done = num_update >= self.max_update  # also where the warm-up takes all of it
        left = self.shape(1.0 if done else (num_update - self.warmup_steps) / self.max_steps)
        self.base_lr = self.final_lr + (self.base_lr_orig - self.final_lr) * left
        return self.base_lr


class PolyScheduler(_Decay):
    """A decay along ``(1 - share) ** pwr``."""

    def __init__(
        self, max_update: int, base_lr: float = 0.01, pwr: float = 2, final_lr: float = 0, **warmup: Any
    ) -> None:
        super().__init__(max_update, base_lr, final_lr, **warmup)
        self.power = pwr

    def shape(self, share: float) -> float:
        """What is left of the decay after `share` of it."""
        return (1 - share) ** self.power


class CosineScheduler(_Decay):
    """A decay along half a cosine, ``(1 + cos(pi share)) / 2`` (Loshchilov and Hutter 2017)."""

    def shape(self, share: float) -> float:
        """What is left of the decay after `share` of it."""
        return (1 + math.cos(math.pi * share)) / 2
