"""What is not needed any more goes: old samples, old versions of tables, models that were superseded."""

from __future__ import annotations

from dataclasses import dataclass

from twin.app.repairing import KEPT
from twin.app.staging import abandoned, remove_abandoned
from twin.core.settings import Settings


@dataclass(frozen=True)
class Keep:
    """What stays. Versions that are as young or among the newest; models beside champion and challenger."""

    samples_months: int | None
    version_days: int
    versions: int
    models: int

    @classmethod
    def of(cls, settings: Settings) -> Keep:
        return cls(
            settings.keep_samples_months,
            settings.keep_version_days,
            settings.keep_versions,
            settings.keep_models,
        )


def tidy_home(settings: Settings, keep: Keep, dry_run: bool = False) -> dict[str, int]:
    """How much of each kind went, or would."""
    from features.lake import Lake
    from features.upkeep import let_go
    from twin.app.archiving import tidy

    lake = Lake(settings)
    with lake.exclusive():
        told = {} if dry_run else tidy(lake, keep.samples_months)
        gone = [let_go(lake, table, keep.version_days, keep.versions, dry_run) for table in KEPT.values()]
    told["versions_let_go"] = sum(gone)
    told["models_let_go"] = _tidy_models(settings, keep.models, dry_run)
    told["staging_folders_removed"] = len(abandoned(settings)) if dry_run else remove_abandoned(settings)
    return told


def _tidy_models(settings: Settings, newest: int, dry_run: bool) -> int:
    from training.registry import Registry, never_used
    from training.sync import Watched

    if never_used(settings):
        return 0
    # a calibration that waits for a person
    watched = [Watched.model_validate_json(one.read_bytes()) for one in settings.home.glob("sync/*.json")]
    waiting = {one.waiting_version for one in watched if one.waiting_version}
    registry = Registry(settings)
    gone = [one for one in registry.superseded(newest) if one not in waiting]
    for version in gone if not dry_run else ():
        registry.let_go(version)
    return len(gone)
