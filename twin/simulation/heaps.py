"""Binary heaps in arrays that several of them share: each begins at `start` and has `size` entries."""

from __future__ import annotations

import numba


@numba.njit(cache=True, error_model="numpy")
def push(end, job, start, size, ends, jobs):  # type: ignore[no-untyped-def]
    at = size
    while at > 0:
        parent = (at - 1) >> 1
        if ends[start + parent] <= end:
            break
        ends[start + at] = ends[start + parent]
        jobs[start + at] = jobs[start + parent]
        at = parent
    ends[start + at] = end
    jobs[start + at] = job


@numba.njit(cache=True, error_model="numpy")
def pop(start, size, ends, jobs):  # type: ignore[no-untyped-def]
    """The job that ends first; `size` counts it."""
    popped = jobs[start]
    size -= 1
    if size > 0:
        replace(ends[start + size], jobs[start + size], start, size, ends, jobs)
    return popped


@numba.njit(cache=True, error_model="numpy")
def replace(end, job, start, size, ends, jobs):  # type: ignore[no-untyped-def]
    """Takes the place of the job that ends first."""
    at, child = 0, 1
    while child < size:
        if child + 1 < size and ends[start + child + 1] < ends[start + child]:
            child += 1
        if ends[start + child] >= end:
            break
        ends[start + at] = ends[start + child]
        jobs[start + at] = jobs[start + child]
        at, child = child, 2 * child + 1
    ends[start + at] = end
    jobs[start + at] = job
