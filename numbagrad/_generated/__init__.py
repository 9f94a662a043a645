"""Home of the generated modules, which live in the kernel cache and are imported from there by name."""

from numbagrad.native.cache import generated_paths

__path__ = generated_paths()
