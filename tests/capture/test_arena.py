"""Places for buffers: apart while in use, and no more memory than such a scheme needs."""

from hypothesis import given
from hypothesis import strategies as st

from numbagrad.capture.arena import places


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 8), st.integers(1, 6)), max_size=30))
def test_what_is_in_use_at_once_has_places_apart(drawn):
    spans = sorted((first, first + length, 64 * size) for first, length, size in drawn)
    offsets, top = places(spans)
    assert len(offsets) == len(spans)
    placed = [(*span, at) for span, at in zip(spans, offsets, strict=True)]
    for i, (first, last, size, at) in enumerate(placed):
        assert at >= 0
        assert at + size <= top
        for other_first, other_last, other_size, other in placed[:i]:
            if first <= other_last and other_first <= last:
                assert at + size <= other or other + other_size <= at
    assert top <= sum(size for _, _, size in spans)


def test_a_chain_takes_two_places_and_pieces_are_joined():
    chain = [(k, k + 1, 64) for k in range(50)]
    assert places(chain)[1] == 128
    # Two small neighbours are free by row 2, and the large one fits where they were.
    assert places([(0, 1, 64), (0, 1, 64), (2, 3, 128)]) == ([0, 64, 0], 128)
    # What is free below the top is extended, not left.
    assert places([(0, 1, 64), (2, 3, 256)]) == ([0, 0], 256)
    assert places([]) == ([], 0)
