"""Commands that move and show data."""

from __future__ import annotations

import json
from contextlib import nullcontext
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from twin.app.commands.console import AsJson, err, fail, out
from twin.core.settings import Settings


def run() -> None:
    """The main job: reports to predictions, from nothing, through real Airflow on this machine."""
    from twin.app.local_airflow import AirflowFailed
    from twin.app.main_job import ChainFailed
    from twin.app.main_job import run as run_main_job

    try:
        run_main_job(Settings.from_environment(), out)
    except (AirflowFailed, ChainFailed) as error:
        fail(1, str(error))


def ingest(
    paths: Annotated[
        list[Path],
        typer.Argument(
            help="Report documents (.txt, .md, .pdf), results of a harness (.csv: cphtestp, jmstestp, or the "
            "columns of `twin export measurements`), files of its runs (.log, .txt, .csv, .json, .jsonl: "
            "MQ-CPH, PerfHarness, RabbitMQ PerfTest, OpenMessaging Benchmark, our own), or folders of them. "
            "FILE.yaml beside a file, or archive.yaml for all of a folder, says what it lacks."
        ),
    ],
    source: Annotated[
        str | None, typer.Option(help="Source id of a file that is not known by its content.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Read files into bronze and validate: silver, quarantine, findings. A file that cannot be read is
    refused with the reason and changes nothing; the others are taken. Exit code 2 if any was refused."""
    from features.lake import WriteFailed
    from twin.app.archiving import Taken
    from twin.app.pipeline import ingest as ingest_all
    from twin.sources.documents import ReadDocument, Refused
    from twin.sources.files import files_in, kind_of, read_file

    documents: dict[str, ReadDocument] = {}
    runs: list[Path] = []
    refused: dict[str, str] = {}
    for path in files_in(paths):
        if kind_of(path) == "runs":
            runs.append(path)
            continue
        try:
            document = read_file(path, source)
            known = documents.setdefault(document.card.source_id, document)
            if known.card.document_sha256 != document.card.document_sha256:
                raise Refused(f"{known.card.document_name} is {known.card.source_id} too; name one otherwise")
        except (Refused, OSError) as error:
            refused[str(path)] = str(error)
    tables: dict[str, dict[str, Any]] = {}
    taken = Taken()
    if documents or runs:
        with err.status("reading and validating") if err.is_terminal else nullcontext():
            try:
                told = Settings.from_environment()
                tables, taken = ingest_all(told, list(documents.values()), runs, source)
            except WriteFailed as error:
                fail(1, f"{error}; nothing of this run was committed to it, the next run starts afresh")
    refused |= taken.refused
    if as_json:
        cards = [document.card.model_dump(mode="json") for document in documents.values()]
        archived = {"runs": taken.runs, "samples": taken.samples, "known": taken.known}
        print(json.dumps({"documents": cards, "archive": archived, "tables": tables, "refused": refused}))
    else:
        for document in documents.values():
            out.print(f"{document.card.source_id}: {document.card.figures} figures", highlight=False)
        if runs:
            again = f"; {len(taken.known)} files were known already" if taken.known else ""
            out.print(f"{taken.runs} runs with {taken.samples} intervals{again}", highlight=False)
        for name, table in tables.items():
            state = "new version" if table["changed"] else "unchanged, version"
            out.print(f"{name}: {table['rows']} rows ({state} {table['version']})", highlight=False)
    for document in documents.values():
        if document.remark:
            err.print(f"{document.card.document_name}: {document.remark}", style="yellow", soft_wrap=True)
    for name, reason in refused.items():
        err.print(f"refused {name}: {reason}", markup=False, soft_wrap=True)
    if refused or not (documents or runs):
        fail(2, f"{len(refused)} refused" if refused else "nothing to ingest")


def export(
    table: Annotated[str, typer.Argument(help="A table; `twin schema` lists them.")],
    where: Annotated[str | None, typer.Option(help="SQL predicate over the table's columns.")] = None,
    fmt: Annotated[str, typer.Option("--format", help="csv, jsonl or parquet.")] = "csv",
    version: Annotated[int | None, typer.Option(help="An older version; the newest when left out.")] = None,
) -> None:
    """Write a table to standard output."""
    from features.lake import Lake, NoSuchTable, NoSuchVersion
    from features.predicates import BadPredicate
    from twin.app.exporting import FORMATS
    from twin.core.tables import TABLES

    kept = {name: one for name, one in TABLES.items() if one.layer != "file"}
    if table not in kept:
        fail(2, f"{table!r} is not a table; there is {', '.join(kept)}")
    if fmt not in FORMATS:
        fail(2, f"{fmt!r} is none of {', '.join(FORMATS)}")
    try:
        rows = Lake(Settings.from_environment()).arrow(kept[table], version, where)
    except (BadPredicate, NoSuchVersion) as error:
        fail(2, str(error))
    except NoSuchTable as error:
        fail(1, str(error))
    FORMATS[fmt](rows)


def quality(as_json: AsJson = False) -> None:
    """The findings of the last validation: which figure breaks which rule, and what was expected."""
    from expectations.summary import summary_page
    from features.lake import Lake, NoSuchTable
    from twin.core.tables import FINDINGS

    settings = Settings.from_environment()
    try:
        findings = Lake(settings).arrow(FINDINGS).to_pylist()
    except NoSuchTable:
        fail(1, "nothing has been validated yet: run `twin ingest` or `make run`")
    findings.sort(key=lambda finding: (finding["source_id"], finding["line"], finding["rule"]))
    columns = ("rule", "severity", "source_id", "line", "printed", "expected", "message")
    if as_json:
        print(json.dumps([{name: finding[name] for name in columns} for finding in findings], indent=1))
        return
    for source_id, of_source in groupby(findings, key=lambda finding: finding["source_id"]):
        out.print(f"\n[bold]{source_id}[/bold]", highlight=False)
        for finding in of_source:
            style = "red" if finding["severity"] == "error" else "yellow"
            head = f"  line {finding['line']}: [{style}]{finding['rule']}[/{style}]: "
            body = f"printed {finding['printed']!r}, expected {finding['expected']}; {finding['message']}"
            out.print(head + escape(body), highlight=False, soft_wrap=True)
    errors = sum(finding["severity"] == "error" for finding in findings)
    out.print(
        f"{errors} errors, {len(findings) - errors} warnings; as a page: {summary_page(settings)}",
        soft_wrap=True,
    )


def tidy(
    keep_months: Annotated[
        int | None,
        typer.Option(min=1, help="Remove samples measured more months ago; all are kept when left out."),
    ] = None,
    version_days: Annotated[
        int | None,
        typer.Option(min=0, help="Keep versions of tables so young (TWIN_KEEP_VERSION_DAYS)."),
    ] = None,
    versions: Annotated[
        int | None, typer.Option(min=1, help="Keep so many of the newest in any case (TWIN_KEEP_VERSIONS).")
    ] = None,
    models: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Keep so many of the newest models beside champion, challenger and the "
            "champion before (TWIN_KEEP_MODELS).",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    as_json: AsJson = False,
) -> None:
    """Put the interval samples together in fewer files, and let go what nothing needs any more: old versions
    of tables, superseded models, leftovers. What runs amount to is kept for ever."""
    from dataclasses import replace

    from twin.app.tidying import Keep, tidy_home

    settings = Settings.from_environment()
    given = {
        "samples_months": keep_months, "version_days": version_days, "versions": versions, "models": models,
    }  # fmt: skip
    keep = replace(Keep.of(settings), **{name: one for name, one in given.items() if one is not None})
    told = tidy_home(settings, keep, dry_run)
    if as_json:
        print(json.dumps(told))
    else:
        for name, count in told.items():
            out.print(f"{name.replace('_', ' ')}: {count}", highlight=False)
