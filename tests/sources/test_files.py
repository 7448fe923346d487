"""What a file is, told by its name and its first lines."""

from __future__ import annotations

import pytest

from twin.core.tables import MEASUREMENTS
from twin.sources.documents import Refused
from twin.sources.files import files_in, kind_of, read_file

RESULTS = b"# CSV Results\n# Persistence, Msg Size, Threads, Rate (RT/s)\n1,2048,1,124.97\n"


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("report.txt", b"words", "report"),
        ("report.PDF", b"%PDF", "report"),
        ("requests.jsonl", b"{}", "requests"),
        ("requests.parquet", b"PAR1", "requests"),
        ("results.csv", RESULTS, "harness"),
        ("old.csv", b"Tue Oct 16 15:48:22 UTC 2018\n" + RESULTS.split(b"\n", 1)[1], "harness"),
        ("bare.csv", b"Persistence, Msg Size, Threads, Rate (RT/s)\n1,2048,1,124.97\n", "harness"),
        ("mine.csv", b"\xef\xbb\xbffamily,metric,value\r\n", "harness"),
        ("quoted.csv", b'"metric","value"\n', "harness"),
        ("exported.csv", ",".join(MEASUREMENTS.columns).encode() + b"\n" + b"," * 20_000, "harness"),
        ("requests.csv", b"request_id,family,os\n1,generic,linux\n", "requests"),
        ("other.csv", b"a,b\n1,2\n", None),
        ("empty.csv", b"", None),
        ("binary.csv", b"metric,value\n\x00\x01", None),
        ("noise.csv", bytes(range(1, 256)) * 9, None),
        ("results.csv.yaml", b"os: linux", None),
        ("sheet.xlsx", b"PK", None),
    ],
)
def test_a_file_is_known_by_suffix_and_content(tmp_path, name, content, kind):
    path = tmp_path / name
    path.write_bytes(content)
    assert kind_of(path) == kind


def test_what_cannot_be_read_is_of_no_kind(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "lost.csv").symlink_to(tmp_path / "nowhere")
    assert [kind_of(tmp_path / name) for name in ("folder.csv", "lost.csv", "nothing.txt")] == [None] * 3


def test_reports_and_results_are_read_and_requests_are_sent_elsewhere(tmp_path):
    results = tmp_path / "results.csv"
    results.write_bytes(b"# Fri Jun 3 20:39:04 UTC 2022\n" + RESULTS)
    (tmp_path / "results.csv.yaml").write_text("{os: linux, machine: m, cpus: 1, product: p, version: v}")
    assert read_file(results, "mine").card.source_id == "harness-mine"
    unknown = tmp_path / "other.md"
    unknown.write_text("a\tb\n1\t2\n")
    assert read_file(unknown, "mine").card.source_id == "mine"
    requests = tmp_path / "requests.csv"
    requests.write_text("family,os\ngeneric,linux\n")
    with pytest.raises(Refused, match="twin predict"):
        read_file(requests)


@pytest.mark.parametrize("name", ["other.csv", "sheet.xlsx", "nothing.csv"])
def test_any_other_file_is_refused_with_the_reason(tmp_path, name):
    if name != "nothing.csv":
        (tmp_path / name).write_text("a,b\n1,2\n")
    with pytest.raises(Refused, match=name):
        read_file(tmp_path / name)


def test_a_folder_stands_for_what_can_be_read_in_it(tmp_path):
    for name in ("b.txt", "a.pdf", "requests.csv", "notes.docx", "c.csv.yaml"):
        (tmp_path / name).write_text("family,os\n")
    (tmp_path / "c.csv").write_bytes(RESULTS)
    assert [path.name for path in files_in([tmp_path])] == ["a.pdf", "b.txt", "c.csv"]


def test_a_sidecar_among_given_files_is_read_with_its_file(tmp_path):
    given = [tmp_path / name for name in ("c.csv", "c.csv.yaml", "alone.yaml")]
    for path in given:
        path.touch()
    assert [path.name for path in files_in(given)] == ["c.csv", "alone.yaml"]
