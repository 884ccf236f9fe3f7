"""The ring that islands exchange candidates along (ring topology, e.g. Whitley, Rana & Heckendorn 1999)."""

from __future__ import annotations


def ring_neighbours(island: int, islands: int) -> tuple[int, ...]:
    """The islands before and after this one in the ring, ascending; each once, and never the island itself.

    Args:
        island: 0 to `islands` - 1.
        islands: How many there are; positive.

    Returns:
        No neighbour for one island, one for two, two otherwise.

    Raises:
        ValueError: The island is not in the ring.
    """
    if not 0 <= island < islands:
        msg = f"island {island} is not in a ring of {islands}"
        raise ValueError(msg)
    return tuple(sorted({(island - 1) % islands, (island + 1) % islands} - {island}))
