"""The codes that reshape understands."""

from numbagrad.errors import MXNetError
from numbagrad.ops.layout import size_of


def resolve_shape(old: tuple[int, ...], codes: tuple[int, ...], reverse: bool = False) -> tuple[int, ...]:
    """The shape that reshape `codes` mean for an array of shape `old`; see :meth:`NDArray.reshape`."""
    if reverse:
        if -4 in codes:
            parts: list[int] = []
            i = 0
            while i < len(codes):  # -4, a, b read from the right is b, a, -4: keep the three together
                if codes[i] == -4:
                    parts[:0] = [-4, codes[i + 2], codes[i + 1]]
                    i += 3
                else:
                    parts[:0] = [codes[i]]
                    i += 1
            flipped = tuple(parts)
        else:
            flipped = codes[::-1]
        return resolve_shape(old[::-1], flipped)[::-1]
    size = size_of(old)
    result: list[int] = []
    unknown: int | None = None
    source = 0
    i = 0

    def take() -> int:
        nonlocal source
        if source >= len(old):
            raise MXNetError(f"reshape: the codes {codes} use more axes than {old} has")
        source += 1
        return old[source - 1]

    while i < len(codes):
        code = codes[i]
        if code > 0:
            result.append(code)
            source += 1
        elif code == 0:
            if size == 0 and source >= len(old):
                result.append(0)
            else:
                result.append(take())
        elif code == -1:
            if unknown is not None:
                raise MXNetError(f"reshape: only one axis of {codes} can be inferred")
            unknown = len(result)
            result.append(1)
            source += 1
        elif code == -2:
            result.extend(old[source:])
            source = len(old)
        elif code == -3:
            result.append(take() * take())
        elif code == -4:
            if i + 2 >= len(codes):
                raise MXNetError(f"reshape: -4 must be followed by two lengths in {codes}")
            whole = take()
            left, right = codes[i + 1], codes[i + 2]
            if left == -1 and right == -1:
                raise MXNetError(f"reshape: only one part of a split can be inferred in {codes}")
            if left == -1:
                left = whole // right
            elif right == -1:
                right = whole // left
            if left * right != whole:
                raise MXNetError(f"reshape: an axis of {whole} cannot be split into {left} and {right}")
            result += [left, right]
            i += 2
        else:
            raise MXNetError(f"reshape: {code} is no length and no code in {codes}")
        i += 1
    known = size_of(tuple(result))
    if unknown is not None:
        if known == 0 or size % known:
            raise MXNetError(f"reshape: cannot infer -1 of {codes} for {old}: {size} elements over {known}")
        result[unknown] = size // known
    elif known > size:
        raise MXNetError(f"reshape: cannot make {tuple(result)} of {old}: {known} elements against {size}")
    elif known < size:
        raise ValueError(f"reshape: cannot make {tuple(result)} of {old}: {known} elements against {size}")
    return tuple(result)
