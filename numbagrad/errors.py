"""The exceptions that numbagrad raises on its own account."""


class MXNetError(RuntimeError):
    """A bad shape, dtype, argument or use of the tape; the name is the one MXNet programs catch."""


class InPlaceError(MXNetError):
    """A write that would break a recorded graph, refused before anything was written."""


class CaptureError(MXNetError):
    """Something in a captured function that cannot be replayed, or does not replay as it ran."""
