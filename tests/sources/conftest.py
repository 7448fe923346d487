"""A small document in the broker report's layout; every figure in it is invented."""

import pytest
from twin.sources.report import Report

from twin.sources.document import Document

TEXT = """Imaginary Broker 9, a report that was never measured

| Contents | page |
|----------|------|
| 10.1 Nothing at all | 3 |

10.1 Nothing at all

| Persist | Msg Size | Msgs/sec | % CPU Busy | CPU ms/msg |
|---------|----------|----------|------------|------------|
| no | 1024 | 1000.00 | 50.00 | 1.00 |
| | | | | |
| Yes | 1024 | 100.00 | 5.00 | 1.00 |

10.2 Not declared

| Persist | Msg Size | Msgs/sec | % CPU Busy | CPU ms/msg |
|---------|----------|----------|------------|------------|
| no | 1024 | 7.00 | 7.00 | 7.00 |
"""

REPORT = Report.model_validate(
    {
        "source_id": "imaginary-9",
        "title": "Imaginary Broker 9",
        "edition": "First",
        "published_at": "2001-02-03",
        "publisher": "Nobody",
        "document_sha256": "",
        "recognised_by": ["Imaginary Broker 9"],
        "charts_missing": [],
        "heading": r"^(10(?:\.\d+)+) ",
        "keys": {"Persist": "persistent", "Msg Size": "message_bytes"},
        "metrics": {
            "Msgs/sec": "throughput_msgs_per_s",
            "% CPU Busy": "cpu_busy_pct",
            "CPU ms/msg": "cpu_ms_per_msg",
        },
        "words": {"no": False, "yes": True},
        "configuration": {
            "os": "solaris",
            "machine": "Imaginary 2",
            "cpus": 2,
            "mhz": 100,
            "memory_mb": 64,
            "disks": 1,
            "log_disk": "scsi",
            "network_mbps": 10,
            "product": "Imaginary Broker",
            "version": "9",
        },
        "tables": [{"label": "10.1", "configuration": {"family": "message_flow", "node": "trivial"}}],
    }
)


@pytest.fixture
def report() -> Report:
    return REPORT


@pytest.fixture
def text() -> str:
    return TEXT


@pytest.fixture
def document() -> Document:
    return as_document(TEXT)


def as_document(text: str) -> Document:
    return Document("invented.txt", "", tuple(text.split("\n")))
