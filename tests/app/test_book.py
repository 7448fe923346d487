"""The book of the five reports: with an exam whose answers are known, without any, as the DAG leaves it."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

from features.lake import Lake
from training.model import PREDICTORS
from twin.app.book import material
from twin.app.book.arranging import arranged
from twin.app.book.building import NotABook, write_book
from twin.app.book.charting import charts_of
from twin.app.book.figures import Answer, Figure
from twin.app.commands.book import book as book_command
from twin.core.tables import FINDINGS, MEASUREMENTS, QUARANTINE, TARGETS

# counted in the documents
TABLES = {
    "wbimb-v5-solaris": 50, "mqsi-v11-solaris": 13, "mqseries-pubsub-aix": 6, "wmq-v53-windows-clusters": 1,
    "wmq-v7-zos": 11,
}  # fmt: skip
EXCUSE = "nobody asked <b>nicely</b>"
FACTORS = {"nearest": 2.0, "regression": 1.5, "analytic": 0.9, "hybrid": 1.1}


class Page(HTMLParser):
    """What a test wants to know of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path, self.text = path, path.read_text(encoding="utf-8")
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.charts: dict[str, dict] = {}
        self.titles: list[str] = []
        self._chart: str | None = None
        self._in_title = False
        self.feed(self.text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids += [given["id"]] if "id" in given else []
        self.addresses += [given[name] for name in ("href", "src") if name in given]
        self._chart = given.get("data-for") if tag == "script" else None
        self._in_title = tag == "h2"

    def handle_data(self, data):
        if self._chart:
            self.charts[self._chart] = json.loads(data)
        elif self._in_title and data.strip():
            self.titles.append(data)

    def handle_endtag(self, tag):
        self._chart, self._in_title = None, False

    @property
    def series(self):
        return [one for chart in self.charts.values() for one in chart["series"]]

    def section(self, anchor):
        return re.search(rf'<section[^>]* id="{anchor}".*?</section>', self.text, re.DOTALL).group()


def pages_of(folder):
    return {path.name: Page(path) for path in sorted(folder.glob("*.html"))}


@pytest.fixture(scope="module")
def rows(settings_with_all):
    lake = Lake(settings_with_all)
    return {
        row["figure_id"]: row | {"quarantined": table is QUARANTINE}
        for table in (MEASUREMENTS, QUARANTINE)
        for row in lake.arrow(table).to_pylist()
    }


@pytest.fixture(scope="module")
def exam(rows):
    """Answers that are known; the first configuration is excused."""
    told = [
        (row["configuration_id"], metric, value, row["source_id"])
        for row in rows.values()
        if row["exam_group"] and row["value"] and row["fact_kind"] == "measurement" and not row["quarantined"]
        for metric, value in (
            [(TARGETS[0], 1000 / row["value"])]
            if row["metric"] == "elapsed_ms"
            else [(row["metric"], row["value"])]
        )
        if metric in TARGETS
    ]
    frame = pd.DataFrame(told, columns=["configuration_id", "target", "measured", "source_id"])
    frame = frame.groupby(["configuration_id", "target", "source_id"], as_index=False).mean()
    parts = []
    for predictor in PREDICTORS:
        value = frame["measured"] * FACTORS[predictor]
        part = frame.assign(
            view="", fold="0", exam_group="g", predictor=predictor, value=value, lo90=value * 0.8,
            hi90=value * 1.3, excuse=None, distance=0.0,
        )  # fmt: skip
        if predictor == "hybrid":
            part.loc[part["configuration_id"] == frame["configuration_id"][0], "excuse"] = EXCUSE
            part.loc[part["excuse"].notna(), ["value", "lo90", "hi90"]] = float("nan")
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def folder(settings_with_all, exam, tmp_path_factory):
    champion = material.Champion("7", "the first model", True, exam, "# Card\n\n| a |\n|---|\n| <i> |\n")
    out = tmp_path_factory.mktemp("site") / "book"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(material, "_champion", lambda _: champion)
        told = write_book(settings_with_all, out)
        before = {path.name: path.read_bytes() for path in out.iterdir()}
        assert write_book(settings_with_all, out) == told
    # the same tables give the same book, and nothing is left beside it
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert {path.name for path in out.parent.iterdir()} <= {"book", ".book.lock"}
    return out


@pytest.fixture(scope="module")
def pages(folder):
    return pages_of(folder)


@pytest.fixture(scope="module")
def reports(pages):
    return {source_id: pages[f"report-{source_id}.html"] for source_id in TABLES}


def test_every_table_of_every_report_is_there(reports, rows, folder):
    for source_id, page in reports.items():
        labels = {
            row["table_label"]
            for row in rows.values()
            if (row["source_id"], row["source_kind"]) == (source_id, "table")
        }
        assert len(labels) == TABLES[source_id]
        assert labels <= set(page.titles)
    assert json.loads((folder / "book.json").read_text())["tables"] == sum(TABLES.values())


def test_every_plotted_figure_is_a_row_of_the_tables(reports, rows):
    plotted = Counter()
    for source_id, page in reports.items():
        for figure in (one for series in page.series for one in series["figures"]):
            row = rows[figure["figure_id"]]
            assert row["source_id"] == source_id
            for name in ("line", "printed", "value"):
                assert figure[name] == row[name], figure
            assert figure["configuration"] == row["configuration_id"]
            if figure["value"] is None:
                assert (figure["low"], figure["high"]) == (row["value_low"], row["value_high"])
            plotted[figure["figure_id"]] += 1
    results = {
        name
        for name, row in rows.items()
        if row["source_kind"] == "table" and row["fact_kind"] in ("measurement", "derived")
        and (row["value"] is not None or row["value_low"] is not None)
    }  # fmt: skip
    assert set(plotted) == results
    assert set(plotted.values()) == {1}


def test_a_figure_stands_at_its_own_place_of_the_axis(reports):
    for page in reports.values():
        for chart in page.charts.values():
            places = chart["axis"].get("names")
            for one in (one for series in chart["series"] for one in series["figures"]):
                assert (one["at"] in places) if places else isinstance(one["at"], int | float)


def test_answers_are_those_of_the_exam_in_the_words_of_the_report(reports, rows, exam):
    asked = exam.set_index(["configuration_id", "target", "predictor"])
    seen = Counter()
    for page in reports.values():
        for series in page.series:
            answers = {one["configuration"]: one for one in series["answers"]}
            for figure in series["figures"]:
                row, answer = rows[figure["figure_id"]], answers.get(figure["configuration"], {})
                key = (figure["configuration"], TARGETS[0], "hybrid")
                if row["metric"] not in ("elapsed_ms", TARGETS[0]) or "hybrid" not in answer:
                    continue
                said = asked.loc[key, ["value", "lo90", "hi90"]].tolist()
                if row["metric"] == "elapsed_ms":
                    value, low, high = (1000 / one for one in said)
                    said = [value, high, low]
                assert answer["hybrid"] == pytest.approx(said, rel=1e-5)
                assert answer["hybrid"][1] < answer["hybrid"][0] < answer["hybrid"][2]
                seen[row["metric"]] += 1
    assert seen["elapsed_ms"] > 400
    assert seen[TARGETS[0]] > 300


def test_a_hub_is_two_boxes_and_a_queue_manager_a_part_of_one(reports, rows):
    page = reports["mqsi-v11-solaris"]
    rates = {
        one["configuration"]: one["hybrid"][0]
        for name, chart in page.charts.items()
        if "-throughput_msgs_per_s-" in name
        for series in chart["series"]
        for one in series["answers"]
        if "hybrid" in one
    }
    for metric, factor in (
        ("hub_throughput_msgs_per_s", lambda _: 2),
        ("queue_manager_throughput_msgs_per_s", lambda row: 1 / row["queue_managers"]),
    ):
        settings = {row["configuration_id"]: row for row in rows.values() if row["metric"] == metric}
        answers = [
            one
            for name, chart in page.charts.items()
            if f"-{metric}-" in name
            for series in chart["series"]
            for one in series["answers"]
        ]
        assert answers
        for one in answers:
            expected = rates[one["configuration"]] * factor(settings[one["configuration"]])
            assert one["hybrid"][0] == pytest.approx(expected, rel=1e-5)


def test_other_metrics_are_foretold_by_physics_that_was_not_given_them(reports, rows, settings_with_all):
    (kept,) = (settings_with_all.home / "backtests").glob("physics-*.parquet")
    folds = pd.read_parquet(kept).set_index(["configuration_id", "metric"])["value"]
    metrics = ("cpu_busy_pct", "cpu_idle_pct", "io_wait_pct", "channel_recovery_s", "mqput_us", "page_set_kb")
    seen = Counter()
    for page in reports.values():
        for series in page.series:
            of_configuration = {
                one["configuration"]: rows[one["figure_id"]]["metric"] for one in series["figures"]
            }
            for answer in series["answers"]:
                metric = of_configuration[answer["configuration"]]
                if metric in metrics and "analytic" in answer:
                    assert "hybrid" not in answer
                    expected = folds[answer["configuration"], metric]
                    assert answer["analytic"][0] == pytest.approx(expected, rel=1e-5)
                    seen[metric] += 1
    assert set(seen) == set(metrics)
    assert "The hybrid learns rates and processor time only" in reports["wmq-v7-zos"].text


def test_doubted_figures_are_marked_with_the_rule(reports, rows, settings_with_all):
    rules = {}
    for one in Lake(settings_with_all).arrow(FINDINGS).to_pylist():
        rules.setdefault(one["figure_id"], set()).add(one["rule"])
    for page in reports.values():
        for figure in (one for series in page.series for one in series["figures"]):
            name = figure["figure_id"]
            mark = "error" if rows[name]["quarantined"] else "warning" if name in rules else None
            assert figure.get("mark") == mark
            assert set(figure.get("rules", "").split(", ")) - {""} == rules.get(name, set())
    hub = reports["mqsi-v11-solaris"].section("table-figure-4")
    assert "in quarantine" in hub
    assert "expected 174 to 176" in hub


def test_an_excuse_is_told_and_has_no_point(reports, exam):
    (excused,) = exam[exam["excuse"].notna()]["configuration_id"].unique()
    text = "".join(page.text for page in reports.values())
    assert "no answer: nobody asked &lt;b&gt;nicely&lt;/b&gt;" in text
    assert EXCUSE not in text
    answers = [one for page in reports.values() for series in page.series for one in series["answers"]]
    asked = [one for one in answers if one["configuration"] == excused]
    assert asked
    assert not any("hybrid" in one for one in asked)


@pytest.mark.parametrize(
    ("source_id", "anchor"),
    [
        ("mqseries-pubsub-aix", "table-hardware"),
        ("mqsi-v11-solaris", "table-physical-environment-p1"),
        ("wmq-v7-zos", "table-topic-tree-levels"),
    ],
)
def test_a_table_of_the_set_up_is_a_table(reports, source_id, anchor):
    section = reports[source_id].section(anchor)
    assert "nothing in it was measured" in section
    assert "<table>" in section
    assert 'class="plot"' not in section


def test_every_address_leads_somewhere(folder, pages):
    assert_links(folder, pages)


def assert_links(folder, pages):
    for page in pages.values():
        assert [one for one, count in Counter(page.ids).items() if count > 1] == []
        for address in page.addresses:
            assert address == "data:," or not re.match(r"[a-z]+:|//", address), address
            if address == "data:,":
                continue
            name, _, anchor = address.partition("#")
            assert not name or (folder / name).is_file(), f"{page.path.name}: {address}"
            if anchor:
                assert anchor in pages[name or page.path.name].ids, f"{page.path.name}: {address}"


def test_nothing_comes_from_the_network(folder):
    ours = [*folder.glob("*.html"), folder / "book.css", folder / "book.js"]
    for path in ours:
        assert not re.search(r"https?://|@import|url\(", path.read_text(encoding="utf-8")), path.name
    assert (folder / "plotly.min.js").stat().st_size > 1_000_000


def test_every_finding_leads_to_the_table_that_prints_it(pages, rows, settings_with_all):
    findings = Lake(settings_with_all).arrow(FINDINGS).to_pylist()
    findings.sort(key=lambda one: (one["source_id"], one["line"], one["rule"]))
    told = re.findall(r'<a href="(report-[^"]+)" aria-label="Line (\d+) of', pages["findings.html"].text)
    assert [int(line) for _, line in told] == [one["line"] for one in findings]
    for (address, _), finding in zip(told, findings, strict=True):
        name, _, anchor = address.partition("#")
        assert f'<td class="number">{rows[finding["figure_id"]]["line"]}</td>' in pages[name].section(anchor)


def test_the_exam_has_scores_and_says_what_was_not_sat(pages):
    page = pages["exam.html"]
    assert {chart["kind"] for chart in page.charts.values()} == {"exam", "errors"}
    assert "twin backtest --protocol platform" in page.text
    assert "twin backtest --protocol configuration" not in page.text
    assert "<td>all reports</td><td>hybrid</td>" in page.text


def test_the_index_tells_the_headline(pages):
    assert "10.00%" in pages["index.html"].text
    assert "100.0%" in pages["index.html"].text


def test_the_cards_are_there(pages):
    assert "<h2>Card</h2>" in pages["model.html"].text
    assert "&lt;i&gt;" in pages["model.html"].text
    data = pages["data.html"].text
    for told in ("8edaeb834b9a581d42c9", "IBM Global Services", "Figure 3; Figure 8", "msgs/s", "quarantine"):
        assert told in data


def test_without_a_champion_there_is_a_book_that_says_so(settings_with_all, tmp_path):
    told = write_book(settings_with_all, tmp_path / "book")
    assert told.champion is None
    pages = pages_of(tmp_path / "book")
    assert_links(tmp_path / "book", pages)
    assert "No model is registered yet" in pages["index.html"].text
    answers = [one for page in pages.values() for series in page.series for one in series.get("answers", ())]
    assert any("analytic" in one for one in answers)
    assert not any("hybrid" in one for one in answers)
    assert not (settings_with_all.home / "mlflow" / "mlflow.db").exists()


@pytest.fixture
def call():
    app = typer.Typer()
    app.command()(book_command)

    def call(home, *arguments):
        return CliRunner().invoke(app, [str(one) for one in arguments], env={"TWIN_HOME": str(home)})

    return call


def test_the_command_tells_where_the_book_is(call, settings_with_all, tmp_path):
    answer = call(settings_with_all.home, "--out", tmp_path / "book", "--json")
    assert answer.exit_code == 0, answer.output
    told = json.loads(answer.stdout)
    assert Path(told["page"]).is_file()
    assert told["tables"] == sum(TABLES.values())
    assert told["charts"] > told["tables"]


def test_without_tables_there_is_no_book(call, tmp_path):
    answer = call(tmp_path / "home")
    assert answer.exit_code == 1
    assert "does not exist yet" in answer.stderr
    assert not (tmp_path / "home" / "book").exists()


def test_a_folder_of_somebody_else_is_left_alone(call, settings_with_all, tmp_path):
    (tmp_path / "letter.txt").write_text("mine")
    answer = call(settings_with_all.home, "--out", tmp_path)
    assert answer.exit_code == 2
    assert "is no book" in answer.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_book_that_cannot_be_finished_leaves_the_one_before(settings_with_all, tmp_path, monkeypatch):
    write_book(settings_with_all, tmp_path / "book")
    before = (tmp_path / "book" / "index.html").read_text()

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr("twin.app.book.building.shutil.copyfile", full)
    with pytest.raises(OSError, match="no space"):
        write_book(settings_with_all, tmp_path / "book")
    assert (tmp_path / "book" / "index.html").read_text() == before
    assert [path.name for path in tmp_path.iterdir() if path.name != ".book.lock"] == ["book"]


def test_a_file_in_the_way_is_told(settings_with_all, tmp_path):
    (tmp_path / "book").write_text("a file")
    with pytest.raises(NotABook):
        write_book(settings_with_all, tmp_path / "book")


def figure(at=0, value=1.0, **settings):
    return Figure(
        f"s:{at}:0", "s", at + 1, "t", "h", str(value), TARGETS[0], value, None, None, "table", "measurement",
        "{}", None, f"c{at}", settings, answers={"analytic": Answer(value * 1.1, value, value * 1.3)},
    )  # fmt: skip


def test_lines_are_told_apart_by_what_varies_beside_the_axis():
    some = [
        figure(at, message_bytes=size, persistent=persistent, cpus=4)
        for at, (size, persistent) in enumerate((s, p) for s in (1, 10, 100, 1000) for p in (False, True))
    ]
    how = arranged(some)
    assert (how.axis, how.apart, how.charts) == ("message_bytes", ("persistent",), ())
    (chart,) = charts_of("t", TARGETS[0], some)
    assert chart.spec["axis"]["log"]
    assert [one["name"] for one in chart.spec["series"]] == ["not persistent", "persistent"]


def test_too_many_lines_become_several_charts():
    some = [
        figure(at, message_bytes=size, cpus=cpus, mhz=mhz)
        for at, (size, cpus, mhz) in enumerate(
            (s, c, m) for s in range(1, 9) for c in (1, 2, 4, 8) for m in (100, 200)
        )
    ]
    charts = charts_of("t", TARGETS[0], some)
    assert len(charts) == 2
    assert all(len(chart.spec["series"]) <= 6 for chart in charts)


def test_rows_that_differ_in_everything_have_names():
    some = [figure(0, cpus=1, mhz=100, persistent=True), figure(1, cpus=2, mhz=200, persistent=False)]
    (chart,) = charts_of("t", TARGETS[0], some)
    assert chart.wide
    assert len(chart.spec["axis"]["names"]) == 2


def test_values_far_apart_have_a_logarithmic_axis():
    near = charts_of("t", TARGETS[0], [figure(at, 10.0 + at, message_bytes=at + 1) for at in range(4)])
    far = charts_of("t", TARGETS[0], [figure(at, 10.0**at, message_bytes=at + 1) for at in range(4)])
    assert [one.spec["values"]["log"] for one in (*near, *far)] == [False, True]


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    executable = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if executable is None:
        pytest.skip("no Chromium is on this machine")
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
    with playwright.sync_playwright() as started:
        running = started.chromium.launch(executable_path=executable, args=arguments)
        yield running
        running.close()


@pytest.fixture(params=["light", "dark"])
def opened(request, browser, folder):
    """A page as a file; it must not complain, nor ask for anything but its neighbours."""
    context = browser.new_context(color_scheme=request.param, viewport={"width": 1280, "height": 900})
    complaints = []

    def open_page(name):
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        page.on("requestfailed", lambda asked: complaints.append(asked.url))
        page.goto((folder / name).as_uri())
        return page

    yield open_page, complaints
    context.close()


@pytest.mark.parametrize("name", ["report-mqsi-v11-solaris.html#table-figure-4", "exam.html"])
def test_charts_are_drawn_when_they_come_into_view(opened, folder, name):
    open_page, complaints = opened
    page, _, anchor = name.partition("#")
    shown = open_page(page)
    if anchor:
        shown.evaluate(f"location.hash = '#{anchor}'")
    place = f"#{anchor} .plot" if anchor else ".plot"
    shown.wait_for_selector(f"{place}.js-plotly-plot .scatterlayer .points path")
    assert 0 < shown.locator(".js-plotly-plot").count() < len(Page(folder / page).charts) + (not anchor)
    assert complaints == []


@pytest.mark.parametrize("name", ["index.html", "report-wmq-v53-windows-clusters.html", "findings.html"])
def test_nobody_is_kept_out(opened, name):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    open_page, _ = opened
    page = open_page(name)
    if "report" in name:
        page.wait_for_selector(".js-plotly-plot .scatterlayer .points path")
    found = axe.run(page).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []


def test_findings_are_filtered_in_place(opened):
    open_page, complaints = opened
    page = open_page("findings.html")
    seen = page.locator("table.findings tbody tr:visible")
    everything = seen.count()
    page.get_by_label("severity").select_option("error")
    assert 0 < seen.count() < everything
    page.get_by_label("text").fill("Figure nowhere")
    assert seen.count() == 0
    assert page.locator("output").inner_text() == f"0 of {everything} findings"
    assert complaints == []


def test_the_main_job_leaves_a_book_with_the_champions_exam(main_job):
    folder = main_job / "home" / "book"
    told = json.loads((folder / "book.json").read_text())
    assert told["champion"] is not None
    assert told["tables"] == sum(TABLES.values()) + 1
    assert_links(folder, pages_of(folder))
    assert "cphtestp" in (folder / "index.html").read_text()
