"""Dynamic job shop: which of the operations that wait at a free machine starts next."""

import numpy as np


def score(
    processing_time: np.ndarray,
    remaining_work: np.ndarray,
    remaining_operations: np.ndarray,
    due_date: np.ndarray,
    job_arrival: np.ndarray,
    queue_arrival: np.ndarray,
    next_time: np.ndarray,
    winq: np.ndarray,
    now: float,
    queue_length: int,
) -> np.ndarray:
    """Shortest processing time: the sooner an operation would be done, the better.

    Args:
        processing_time: (n,) time of each waiting operation on this machine.
        remaining_work: (n,) time of this and all later operations of its job.
        remaining_operations: (n,) number of this and all later operations of its job.
        due_date: (n,) when its job is due.
        job_arrival: (n,) when its job arrived at the shop.
        queue_arrival: (n,) when it arrived in this queue.
        next_time: (n,) time of its job's next operation; 0 after the last.
        winq: (n,) work that waits at the machine of its job's next operation; 0 after the last.
        now: Time of the decision.
        queue_length: n, at least 2.

    Returns:
        (n,) one finite score per operation; the one with the highest starts, the first one on ties.
    """
    return -processing_time
