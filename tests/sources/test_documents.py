"""Files as they come: text, PDF, and things that are no report."""

from __future__ import annotations

import pytest

from twin.core.outside import BadInput
from twin.sources import document as document_module
from twin.sources import documents as documents_module
from twin.sources import pdf as pdf_module
from twin.sources.document import Document
from twin.sources.documents import Refused, read_document


@pytest.fixture
def known(monkeypatch, report):
    monkeypatch.setattr(documents_module, "reports", lambda: {report.source_id: report})


@pytest.fixture
def text_file(tmp_path, document):
    path = tmp_path / "some name.txt"
    path.write_text("\n".join(document.lines))
    return path


def test_a_known_report_under_any_name(known, text_file):
    read = read_document(text_file)
    assert (read.card.source_id, read.card.declared) == ("imaginary-9", True)
    assert read.card.figures == len(read.figures) > 0


def test_windows_line_ends_and_a_byte_order_mark_change_nothing(known, text_file):
    plain = read_document(text_file)
    text_file.write_bytes(b"\xef\xbb\xbf" + text_file.read_bytes().replace(b"\n", b"\r\n"))
    assert read_document(text_file).figures == plain.figures


def test_an_unknown_document_says_what_is_missing(known, tmp_path):
    path = tmp_path / "other.md"
    path.write_text("A table\n\na\tb\n1\t2\n")
    read = read_document(path)
    assert read.card.source_id.startswith("unknown-")
    assert not read.card.declared
    assert "no declaration fits" in read.remark
    assert read_document(path, "mine").card.source_id == "mine"


def test_a_document_that_claims_to_be_another_is_refused(known, text_file, tmp_path):
    with pytest.raises(Refused, match="is imaginary-9, not other"):
        read_document(text_file, "other")
    stranger = tmp_path / "stranger.txt"
    stranger.write_text("a\tb\n1\t2\n")
    with pytest.raises(Refused, match="it lacks 'Imaginary Broker 9'"):
        read_document(stranger, "imaginary-9")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.txt", b"", "holds no text"),
        ("blank.txt", b" \n\t\n", "holds no text"),
        ("binary.txt", b"\x00\x01\x02", "binary, not text"),
        ("latin.txt", "fig\nSolarís".encode("latin-1"), r"not UTF-8 text \(line 2"),
        ("prose.txt", b"nothing but words", "no table was found"),
        ("broken.pdf", b"%PDF-1.7 and then nothing", "no readable PDF"),
        ("sheet.xlsx", b"PK", "none of .txt, .md"),
    ],
)
def test_a_file_that_is_no_report_is_refused_with_the_reason(known, tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(Refused, match=message):
        read_document(path)


def test_a_file_that_is_not_there(known, tmp_path):
    with pytest.raises(Refused, match="does not exist"):
        read_document(tmp_path / "nothing.txt")


def test_a_file_far_too_large_is_refused_unread(tmp_path, monkeypatch):
    monkeypatch.setattr(document_module, "MOST_BYTES", 10)
    path = tmp_path / "dump.txt"
    path.write_text("x" * 11)
    with pytest.raises(BadInput, match="at most"):
        Document.load(path)


@pytest.fixture
def make_pdf(tmp_path):
    from reportlab.lib.pagesizes import A4
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import Paragraph, SimpleDocTemplate, Table

    def make(*parts):
        path = tmp_path / "made.pdf"
        style = getSampleStyleSheet()["Normal"]
        flow = [
            Paragraph(part, style)
            if isinstance(part, str)
            else Table(part, style=[("GRID", (0, 0), (-1, -1), 1, 0)])
            for part in parts
        ]
        SimpleDocTemplate(str(path), pagesize=A4).build(flow)
        return path

    return make


def test_a_pdf_gives_its_text_and_its_ruled_tables(make_pdf, report, monkeypatch):
    only_first = report.model_copy(update={"tables": report.tables[:1], "statements": []})
    monkeypatch.setattr(documents_module, "reports", lambda: {report.source_id: only_first})
    path = make_pdf(
        "Imaginary Broker 9, a report that was never measured",
        "10.1 Nothing at all",
        [
            ["Persist", "Msg Size", "Msgs/sec", "% CPU Busy", "CPU ms/msg"],
            ["no", "1024", "1000.00", "50.00", "1.00"],
        ],
        "The end.",
    )
    read = read_document(path)
    assert [figure.origin.printed for figure in read.figures] == ["1000.00", "50.00", "1.00"]
    lines = Document.load(path).lines
    assert lines[read.figures[0].origin.line - 1] == "| no | 1024 | 1000.00 | 50.00 | 1.00 |"


def test_a_pdf_without_text_is_refused(tmp_path, known):
    from reportlab.pdfgen.canvas import Canvas

    path = tmp_path / "scan.pdf"
    canvas = Canvas(str(path))
    canvas.rect(10, 10, 100, 100, fill=1)
    canvas.save()
    with pytest.raises(Refused, match="holds no text"):
        read_document(path)


def test_a_pdf_that_takes_too_long_is_refused(make_pdf, monkeypatch):
    path = make_pdf("some text")
    with pytest.raises(BadInput, match="still being read"):
        pdf_module.pdf_lines(path.name, path.read_bytes(), seconds=0.01)


def test_a_pdf_of_too_many_pages_is_refused(make_pdf, monkeypatch):
    path = make_pdf(*["a paragraph of some length"] * 200)
    monkeypatch.setattr(pdf_module, "MOST_PAGES", 1)
    with pytest.raises(BadInput, match="more than 1 pages"):
        pdf_module.lines_of(path.read_bytes())
