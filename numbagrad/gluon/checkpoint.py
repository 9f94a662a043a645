"""Parameters of a block on disk, by their place in it."""

from typing import Any

from numbagrad.errors import MXNetError
from numbagrad.gluon.parameter import Parameter, load_all
from numbagrad.nd.ndarray import NDArray
from numbagrad.nd.serialization import load as read
from numbagrad.nd.serialization import save as write


def read_named(filename: str) -> dict[str, NDArray]:
    """The arrays of a file by their names.

    Raises
    ------
    MXNetError
        If they have none, or there is no such file, or it is damaged.
    """
    loaded = read(filename)
    if isinstance(loaded, dict):
        return loaded
    if loaded:
        raise MXNetError(f"the {len(loaded)} arrays in {filename} have no names: these are no saved parameters")
    return {}


def save(block: Any, filename: str, deduplicate: bool) -> None:
    """See :meth:`Block.save_parameters`."""
    params: dict[str, Parameter] = block._collect_params_with_prefix()
    if deduplicate:
        params = {name: parameter for parameter, name in {p: name for name, p in params.items()}.items()}
    write(filename, {name: parameter._reduce() for name, parameter in params.items()})


def _names(names: Any, most: int = 10) -> str:
    names = list(names)
    return ", ".join(f"'{name}'" for name in names[:most]) + (" ..." if len(names) > most else "")


def load(
    block: Any,
    filename: str,
    ctx: Any,
    allow_missing: bool,
    ignore_extra: bool,
    cast_dtype: bool,
    dtype_source: str,
) -> None:
    """See :meth:`Block.load_parameters`."""
    loaded = read_named(filename)
    params: dict[str, Parameter] = block._collect_params_with_prefix()
    if not loaded and not params:
        return
    if not any("." in name for name in loaded) and not all(name in params for name in loaded):
        # No paths: full names less the block's prefix, as save_params and older programs write them.
        block.collect_params().load(filename, ctx, allow_missing, ignore_extra, block.prefix, cast_dtype, dtype_source)
        return
    if not allow_missing:
        paths: dict[Parameter, list[str]] = {}
        for name, parameter in params.items():
            paths.setdefault(parameter, []).append(name)
        for name, parameter in params.items():
            assert any(path in loaded for path in paths[parameter]), (
                f"Parameter '{name}' is missing in file '{filename}', which contains parameters: {_names(loaded)}. "
                "Set allow_missing=True to ignore missing parameters."
            )
    if not ignore_extra:
        for name in loaded:
            if name not in params:
                raise ValueError(
                    f"Parameter '{name}' loaded from file '{filename}' is not present in the block, which contains "
                    f"parameters {_names(params)}. Set ignore_extra=True to ignore."
                )
    load_all(((params[name], data) for name, data in loaded.items() if name in params), ctx, cast_dtype, dtype_source)
