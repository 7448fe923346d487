"""Everything that a person can fix, looked at one after the other, each with what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from twin.core.settings import Settings

# a note is for who wonders; only what is wrong has to be fixed
State = Literal["well", "note", "wrong"]


@dataclass(frozen=True)
class Finding:
    check: str
    state: State
    what: str
    # for a person
    todo: str = ""
    # what `--fix` may do without asking: nothing is lost by it
    mend: Callable[[], object] | None = field(default=None, compare=False)


Check = Callable[[Settings], Iterator[Finding]]


def checkup(settings: Settings, doing: Callable[[str], None] = lambda _: None) -> Iterator[Finding]:
    """A check that fails itself is told like anything else that is wrong."""
    from twin.app.doctor import home, machine, platform

    checks: tuple[Check, ...] = (*machine.CHECKS, *home.CHECKS, *platform.CHECKS)
    for check in checks:
        name = check.__name__.replace("_", " ")
        doing(name)
        try:
            yield from check(settings)
        except Exception as error:
            yield Finding(name, "wrong", f"could not be looked at: {type(error).__name__}: {error}")
