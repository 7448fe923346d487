"""Binary heaps in arrays that several of them share: each begins at `start` and has `size` entries."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True, error_model="numpy")
def push(end, job, start, size, ends, jobs):  # type: ignore[no-untyped-def]
    at = size
    while at > 0:
        parent = (at - 1) >> 1
        if ends[np.uintp(start + parent)] <= end:
            break
        ends[np.uintp(start + at)] = ends[np.uintp(start + parent)]
        jobs[np.uintp(start + at)] = jobs[np.uintp(start + parent)]
        at = parent
    ends[np.uintp(start + at)] = end
    jobs[np.uintp(start + at)] = job


@numba.njit(cache=True, error_model="numpy")
def pop(start, size, ends, jobs):  # type: ignore[no-untyped-def]
    """The job that ends first; `size` counts it."""
    popped = jobs[start]
    size -= 1
    if size > 0:
        replace(ends[np.uintp(start + size)], jobs[np.uintp(start + size)], start, size, ends, jobs)
    return popped


@numba.njit(cache=True, error_model="numpy")
def replace(end, job, start, size, ends, jobs):  # type: ignore[no-untyped-def]
    """Takes the place of the job that ends first."""
    at, child = 0, 1
    while child < size:
        if child + 1 < size and ends[np.uintp(start + child + 1)] < ends[np.uintp(start + child)]:
            child += 1
        if ends[np.uintp(start + child)] >= end:
            break
        ends[np.uintp(start + at)] = ends[np.uintp(start + child)]
        jobs[np.uintp(start + at)] = jobs[np.uintp(start + child)]
        at, child = child, 2 * child + 1
    ends[np.uintp(start + at)] = end
    jobs[np.uintp(start + at)] = job
