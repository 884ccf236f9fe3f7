"""Online bin packing: which of the bins that fit takes the item."""

import numpy as np


def priority(item: int, bins: np.ndarray) -> np.ndarray:
    """Best Fit: the less room a bin would have left, the better.

    Args:
        item: Size of the arriving item.
        bins: (n,) remaining capacities of the bins that fit the item.

    Returns:
        (n,) one finite priority per bin; the item goes into the bin with the highest, the first one on ties.
    """
    return item - bins.astype(np.float64)
