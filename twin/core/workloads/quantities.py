"""Quantities that several experiment families share."""

from __future__ import annotations

from typing import Annotated

from twin.core.fields import quantity

MessageBytes = Annotated[
    int, quantity("Message body without headers", unit="bytes", ge=0, le=2**30, example=4096)
]
Persistent = Annotated[
    bool, quantity("Messages survive a restart: each unit of work forces the log", example=False)
]
Instances = Annotated[
    int, quantity("Copies of the flow as threads of one execution group", ge=1, le=1024, example=1)
]
ExecutionGroups = Annotated[
    int, quantity("Processes that each run the flow's instances", ge=1, le=1024, example=1)
]
Subscribers = Annotated[
    int, quantity("Subscribers that receive each message", ge=1, le=1_000_000, example=10)
]
BatchSize = Annotated[int, quantity("Messages per batch of a channel", ge=1, le=10_000, example=5)]
MessagesPerCommit = Annotated[int, quantity("Messages per unit of work", ge=1, le=10_000, example=25)]
