"""Small documents in the layouts of the reports; every figure in them is invented."""

from __future__ import annotations

import pytest

from twin.sources.declarations import Report
from twin.sources.document import Document

TEXT = """Imaginary Broker 9, a report that was never measured

| Contents | page |
|----------|------|
| 10.1 Nothing at all | 3 |

1 About it

The machine had 64 MB of memory. Without persistence it moved approximately 1000 msgs/second, and persistent
1KB messages went at 100 msgs/second: ten times slower. A flow of two was 3.5 times faster.

10.1 Nothing at all

| Persist | Msg Size | Msgs/sec | % CPU Busy | CPU ms/msg |
|---------|----------|----------|------------|------------|
| no | 1024 | 1000.00 | 50.00 | 1.00 |
| | | | | |
| Yes | 1,024 | 100.00 | 5.00 | 1.00 |

Two boxes at once\t\t\t\t
A1\t\tBoth\tA2\t
# qmgrs\tAvg\tTotal\tThroughput\t# qmgrs\tTotal
1\t20\t20\t41\t1\t21
2\t15\t30\t65\t2\t31

Figure 1

<b>Kind</b>\tCost <sup>1</sup>\tShare
<b>Small</b>\t80 (20 *4)\tN/A
Large\t<b>240</b> (60*4)\t3.0

Table 7 - as a scanner saw it

No. of Trusted Rate
pairs channels (messages/s)
100 N 98.4 approx. 60-80 2:21
200 Y 97.0 40 N/A
Notes:

USAGE
Set\tPool\tTotal\tUnused\tUsed\tKind
----\t----\t-----\t------\t----\t----

## A page heading

0\t1\t100\t90\t10 USER\t0
1\t1\t100\t95\t0 USER\t0
"""

_RATE = {"metric": "throughput_msgs_per_s"}
_FLOW = {"family": "message_flow", "node": "trivial", "message_bytes": 1024, "persistent": False}

REPORT = Report.model_validate(
    {
        "source_id": "imaginary-9",
        "catalogue": {
            "title": "Imaginary Broker 9",
            "edition": "First",
            "published_at": "2001-02-03",
            "publisher": "Nobody",
            "machines": ["Imaginary 2"],
            "products": ["Imaginary Broker 9"],
            "document_sha256": "",
            "charts_missing": [],
        },
        "recognised_by": ["Imaginary Broker 9", "never measured"],
        "words": {"no": False, "yes": True},
        "configuration": {
            "os": "solaris",
            "machine": "Imaginary 2",
            "cpus": 2,
            "product": "Imaginary Broker",
            "version": "9",
        },
        "tables": [
            {
                "label": "10.1",
                "after": r"^10\.1 ",
                "configuration": {"family": "message_flow", "node": "trivial"},
                "columns": [
                    {"header": "Persist", "key": "persistent"},
                    {"header": "Msg Size", "key": "message_bytes"},
                    {"header": "Msgs/sec", "facts": [_RATE]},
                    {"header": "% CPU Busy", "facts": [{"metric": "cpu_busy_pct"}]},
                    {"header": "CPU ms/msg", "facts": [{"metric": "cpu_ms_per_msg"}]},
                ],
            },
            {
                "label": "Figure 1",
                "after": "^Two boxes",
                "labels": {"box": r"^(A\d)\t"},
                "header": ["# qmgrs", "Avg", "Total", "Throughput", "# qmgrs", "Total"],
                "configuration": None,
                "columns": [
                    {"header": "# qmgrs", "key": "", "box": "A1"},
                    {"header": "Avg", "box": "A1", "facts": [{"metric": "cpu_busy_pct"}]},
                    {"header": "Total", "box": "A1", "facts": [_RATE]},
                    {
                        "header": "Both Throughput",
                        "facts": [
                            {
                                "metric": "overhead_pct",
                                "fact_kind": "derived",
                                "derivation": {
                                    "rule": "sum",
                                    "formula": "one + two",
                                    "of": {
                                        "one": {"table": "Figure 1", "same_row": True, "box": "A1", **_RATE},
                                        "two": {"table": "Figure 1", "same_row": True, "box": "A2", **_RATE},
                                    },
                                },
                            }
                        ],
                    },
                    {"header": "# qmgrs", "key": "", "box": "A2"},
                    {"header": "Total", "box": "A2", "facts": [_RATE]},
                ],
            },
            {
                "label": "Kinds",
                "exam": False,
                "configuration": None,
                "columns": [
                    {"header": "Kind", "key": ""},
                    {
                        "header": "Cost",
                        "facts": [
                            {
                                "metric": "cpu_ms_per_msg",
                                "derivation": {"rule": "product", "formula": "overhead_pct"},
                            },
                            {"metric": "overhead_pct", "find": r"(\(.*\))", "fact_kind": "derived"},
                        ],
                    },
                    {"header": "Share", "facts": [{"metric": "cpu_busy_pct"}]},
                ],
            },
            {
                "label": "Table 7",
                "after": "^Table 7",
                "row": r"^(\d+) ([YN]) ([\d.]+) (.+) (\S+)$",
                "configuration": None,
                "columns": [
                    {"header": "pairs", "key": ""},
                    {"header": "Trusted", "key": ""},
                    {"header": "Rate", "facts": [_RATE]},
                    {"header": "CPU", "facts": [{"metric": "cpu_busy_pct", "find": "(.+)"}]},
                    {"header": "Recovery", "facts": [{"metric": "cpu_ms_per_msg", "find": "(.+)"}]},
                ],
            },
            {
                "label": "USAGE",
                "after": "^USAGE",
                "skip": "^(##.*)?$",
                "exam": False,
                "configuration": None,
                "columns": [
                    {"header": "Set", "key": ""},
                    {"header": "Pool", "key": ""},
                    {"header": "Total", "facts": [{"metric": "cpu_busy_pct"}]},
                    {"header": "Unused", "facts": [{"metric": "overhead_pct"}]},
                    {
                        "header": "Used",
                        "facts": [
                            {
                                "metric": "cpu_ms_per_msg",
                                "derivation": {
                                    "rule": "difference",
                                    "formula": "cpu_busy_pct - overhead_pct",
                                },
                            }
                        ],
                    },
                ],
            },
        ],
        "statements": [
            {
                "section": "1",
                "find": r"had (\d+) MB",
                "configuration": None,
                "facts": [{"metric": "overhead_pct", "fact_kind": "configuration"}],
            },
            {
                "section": "1",
                "find": r"approximately (\d+) msgs",
                "configuration": _FLOW,
                "facts": [_RATE | {"qualifier": "approx", "restates": {"table": "10.*"}}],
            },
            {
                "section": "1",
                "find": r"at (\d+) msgs/second: (\w+) times",
                "configuration": _FLOW | {"persistent": True},
                "facts": [
                    _RATE | {"restates": {"table": "10.1"}},
                    {
                        "metric": "overhead_pct",
                        "fact_kind": "claim",
                        "derivation": {
                            "rule": "ratio",
                            "formula": "fast / slow",
                            "of": {
                                "fast": {"table": "10.1", "keys": {"Persist": "no"}, **_RATE},
                                "slow": {"table": "10.1", "keys": {"Persist": "Yes"}, **_RATE},
                            },
                        },
                    },
                ],
            },
        ],
    }
)


@pytest.fixture
def report() -> Report:
    return REPORT


@pytest.fixture
def document() -> Document:
    return Document("invented.txt", "", tuple(TEXT.split("\n")))
