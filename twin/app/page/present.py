"""What answers at present: the champion, loaded once and followed when another takes its place."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from features.damage import Unreadable
from twin.app.answering import Twin, twin_of
from twin.app.calibration import NotCalibrated
from twin.app.describing import flat_example
from twin.app.page.figures import Figures, read_figures
from twin.app.page.home import families
from twin.core.columns import Columns
from twin.core.configuration import FAMILIES
from twin.core.prediction import THROUGHPUT
from twin.core.settings import Settings

if TYPE_CHECKING:
    from training.registry import Registry

log = logging.getLogger("twin.page")
_LOOK_EVERY_S = 30.0


class NotReady(Exception):
    """There is nothing to answer with yet, and what to do about it."""


@dataclass(frozen=True)
class Known:
    """A model with what was measured, and what the page starts with."""

    twin: Twin
    figures: Figures
    families: list[dict[str, Any]]
    starts: list[dict[str, Any]]


class Present:
    """Requests are answered by what is loaded; a successor is loaded beside them."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._known: Known | None = None
        self._registry: Registry | None = None
        self._made_of: tuple[str | None, int] | None = None
        self._problem = "the page has not looked yet"
        self._looking = threading.Lock()
        self._next_look = 0.0

    @property
    def known(self) -> Known:
        if time.monotonic() >= self._next_look and not self._looking.locked():
            threading.Thread(target=self.look, daemon=True).start()
        if self._known is None:
            raise NotReady(self._problem)
        return self._known

    def look(self) -> None:
        """Load what has become champion or was measured since; nothing is lost where that fails."""
        with self._looking:
            try:
                made_of = self._newest()
                if made_of != self._made_of:
                    self._known, self._made_of = self._loaded(), made_of
                    log.info("version %s answers", made_of[0])
            except (NotCalibrated, Unreadable) as error:
                self._problem = str(error)
            except Exception:
                self._problem = "the tables or the model cannot be read; the log of the page says why"
                log.exception("the champion could not be loaded")
            finally:
                self._next_look = time.monotonic() + _LOOK_EVERY_S

    def _loaded(self) -> Known:
        twin, figures = twin_of(self._settings), read_figures(self._settings)
        _warm_up(twin)
        return Known(twin, figures, families(twin), figures.starts())

    def _newest(self) -> tuple[str | None, int]:
        """The champion's version, and that of the measurements."""
        from features.lake import Lake, NoSuchTable
        from twin.core.tables import MEASUREMENTS

        try:
            version = Lake(self._settings).version(MEASUREMENTS)
        except NoSuchTable:
            version = -1
        return self._champion(), version

    def _champion(self) -> str | None:
        from training.registry import CHAMPION, Registry, never_used

        if never_used(self._settings):
            return None
        self._registry = self._registry or Registry(self._settings)
        champion = self._registry.version_of(CHAMPION)
        return str(champion.version) if champion else None


def _warm_up(twin: Twin) -> None:
    """The first answer of a kind compiles what it needs: not while somebody waits."""
    examples = Columns.of_rows([flat_example(family) for family in FAMILIES])
    for predictor in twin.predictors(THROUGHPUT):
        twin.answer(examples, THROUGHPUT, predictor)
