"""``python -m numbagrad``; see :mod:`numbagrad.command`."""

import sys

from numbagrad.command import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
