"""Sizes in bytes as people read them."""

from __future__ import annotations

_UNITS = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


def size_words(size_bytes: int) -> str:
    """`1 GiB`, `1.5 MiB`, `64 KiB` or `100 bytes`: the largest unit that it fills, to four significant digits.

    Args:
        size_bytes: Not negative.
    """
    for unit, size in _UNITS:
        if size_bytes >= size:
            return f"{float(f'{size_bytes / size:.4g}'):g} {unit}"  # 1023.96 MiB is 1024, and not 1.024e+03
    return "1 byte" if size_bytes == 1 else f"{size_bytes} bytes"
