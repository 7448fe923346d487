"""What benchmarks share."""

import pytest

from twin.app import pipeline
from twin.core.settings import Settings


@pytest.fixture(scope="session")
def trained(spark):
    """A home with the tables of the five reports and a champion."""
    settings = Settings.from_environment()
    pipeline.ingest_files(settings, [], library=True)
    pipeline.build_features(settings)
    pipeline.train_models(settings)
    return settings
