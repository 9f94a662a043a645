"""The two flags of a thread, recording and training, and the scopes that set and restore them."""

from typing import Any

from numbagrad.tape import state


def is_recording() -> bool:
    """Whether ops of this thread are recorded."""
    return state.recording


def is_training() -> bool:
    """Whether layers of this thread behave as in training (dropout active, batch statistics used)."""
    return state.training


def set_recording(is_record: bool) -> bool:
    """Set the recording flag of this thread; returns what it was."""
    previous = state.recording
    state.recording = bool(is_record)
    return previous


def set_training(train_mode: bool) -> bool:
    """Set the training flag of this thread; returns what it was."""
    previous = state.training
    state.training = bool(train_mode)
    return previous


class Scope:
    """Sets flags on entry and restores them on exit, also after an exception; may be entered again, also in itself."""

    __slots__ = ("_recording", "_saved", "_training")

    def __init__(self, recording: bool | None, training: bool | None) -> None:
        self._recording = recording
        self._training = training
        self._saved: Any = None

    def __enter__(self) -> None:
        flags = state
        recording, training = flags.recording, flags.training
        self._saved = (self._saved, recording, training)
        wanted = self._recording
        if wanted is not None and wanted is not recording:
            flags.recording = wanted
        wanted = self._training
        if wanted is not None and wanted is not training:
            flags.training = wanted

    def __exit__(self, *exception: Any) -> None:
        flags = state
        self._saved, flags.recording, flags.training = self._saved


def record(train_mode: bool | None = True) -> Scope:
    """A scope in which ops are recorded; `train_mode` is the training flag, None leaves it.

    Examples
    --------
    >>> from numbagrad import autograd, nd
    >>> x = nd.array([1.0, 2.0])
    >>> x.attach_grad()
    >>> with autograd.record():
    ...     y = x * x
    >>> y.backward()
    >>> x.grad.asnumpy().tolist()
    [2.0, 4.0]
    """
    if train_mode is True:
        return Scope(True, True)
    return Scope(True, None if train_mode is None else bool(train_mode))


def pause(train_mode: bool | None = False) -> Scope:
    """A scope in which ops are not recorded; a :func:`record` inside it records again until its end."""
    return Scope(False, None if train_mode is None else bool(train_mode))


def train_mode() -> Scope:
    """A scope in which layers behave as in training; recording stays as it is."""
    return Scope(None, True)


def predict_mode() -> Scope:
    """A scope in which layers behave as in prediction; recording stays as it is."""
    return Scope(None, False)
