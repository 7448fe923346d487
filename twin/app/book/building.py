"""The book: a static site of every table, measured beside held out, with exam, findings and cards. Made in a
folder beside, and put in its place when it is whole."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from twin.app.book.cards import as_html, rules_of, units_of
from twin.app.book.chapters import Chapter, chapters_of, places_of
from twin.app.book.exam import FIGURES, sat
from twin.app.book.held_out import SHOWN
from twin.app.book.material import Doing, Material, gathered
from twin.app.book.wording import shown
from twin.app.plotly_script import NAME, plotly_script
from twin.core.settings import Settings

_HERE = Path(__file__).parent
_STATIC = ("book.css", "book.js")
# says that a folder is a book, and what is in it
_CONTENTS = "book.json"


class NotABook(Exception):
    """What is there was not made by us and is left alone."""


@dataclass(frozen=True)
class Book:
    page: str
    tables: int
    charts: int
    figures: int
    findings: int
    champion: str | None


def book_folder(settings: Settings) -> Path:
    return settings.home / "book"


def write_book(settings: Settings, out: Path | None = None, doing: Doing = lambda _: None) -> Book:
    """Raises `NoSuchTable` where nothing has been validated yet."""
    folder = (out or book_folder(settings)).absolute()
    if folder.exists() and not _is_ours(folder):
        raise NotABook(f"{folder} is there and is no book: name another folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f".{folder.name}.lock")):
        material = gathered(settings, doing)
        doing("writing the pages")
        for left_over in folder.parent.glob(f".{folder.name}-*"):
            if left_over.is_dir() and _is_ours(left_over):
                shutil.rmtree(left_over)
        draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            book = _write(material, draft, folder)
            _swap(draft, folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return book


def _write(material: Material, draft: Path, folder: Path) -> Book:
    # made for its owner alone; a book is for readers
    draft.chmod(0o755)
    chapters = chapters_of(material.figures, material.documents)
    exams = sat(material.exams)
    charts = [chart for one in chapters for section in one.sections for chart in section.charts]
    charts += [chart for one in exams for chart in one.charts]
    book = Book(
        page=str(folder / "index.html"),
        tables=sum(len(one.sections) for one in chapters),
        charts=len(charts),
        figures=len(material.figures),
        findings=len(material.findings),
        champion=None if material.champion is None else material.champion.version,
    )
    told = {name: value for name, value in asdict(book).items() if name != "page"}
    (draft / _CONTENTS).write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    common = {"book": book, "champion": material.champion, "chapters": chapters, "predictors": SHOWN}
    pages: dict[str, tuple[str, dict[str, Any]]] = {
        "index.html": ("index", {"headline": _headline(material), "exams": exams}),
        "exam.html": ("exam", {"exams": exams, "columns": FIGURES}),
        "findings.html": ("findings", _findings(material, chapters)),
        "model.html": ("model", {"card": as_html(material.champion.card) if material.champion else None}),
        "data.html": (
            "data",
            {"documents": material.documents, "tables": material.tables, "units": units_of(material.figures)},
        ),
        **{one.page: ("report", {"chapter": one}) for one in chapters},
    }
    for name, text in _rendered(pages, common):
        (draft / name).write_text(text, encoding="utf-8")
    for name in _STATIC:
        shutil.copyfile(_HERE / "static" / name, draft / name)
    shutil.copyfile(plotly_script(), draft / NAME)
    return book


def _rendered(
    pages: Mapping[str, tuple[str, dict[str, Any]]], common: dict[str, Any]
) -> Iterable[tuple[str, str]]:
    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"shown": shown, "data": _data}
    for name, (template, values) in pages.items():
        yield name, environment.get_template(f"{template}.html.j2").render(page=name, **common, **values)


def _data(value: Any) -> Markup:
    """For a script element that is no script: nothing in it may end the element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))  # noqa: S704


def _headline(material: Material) -> dict[str, Any] | None:
    exam = material.exams.get("configuration")
    if exam is None:
        return None
    return {
        target: {predictor: of_target["overall"][predictor] for predictor in SHOWN}
        for target, of_target in exam.scores.items()
    }


def _findings(material: Material, chapters: Iterable[Chapter]) -> dict[str, Any]:
    places = places_of(chapters)
    findings = sorted(material.findings, key=lambda one: (one["source_id"], one["line"], one["rule"]))
    return {
        "findings": [{**one, "place": places.get(one["figure_id"])} for one in findings],
        "rules": rules_of(findings),
        "sources": sorted({one["source_id"] for one in findings}),
        "severities": sorted({one["severity"] for one in findings}),
    }


def _is_ours(folder: Path) -> bool:
    return folder.is_dir() and ((folder / _CONTENTS).is_file() or not any(folder.iterdir()))


def _swap(draft: Path, folder: Path) -> None:
    """The book of before goes when this one stands in its place."""
    if not folder.exists():
        draft.rename(folder)
        return
    before = draft.with_name(f"{draft.name}-before")
    folder.rename(before)
    try:
        draft.rename(folder)
    except OSError:
        before.rename(folder)
        raise
    shutil.rmtree(before)
