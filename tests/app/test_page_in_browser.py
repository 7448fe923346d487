"""The page as a planner has it: a real browser on the real server, with the model of the main job."""

from __future__ import annotations

import csv
import io
import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

import pytest

from twin.app.describing import flat_example

from ..browsing import NoBrowser, launched, served

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
expect = playwright.expect

PARTS = ("whatif", "sizing", "batch", "findings")
WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 400, "height": 800}
# two cores that other tests use as well
PATIENCE_MS = 60_000


@pytest.fixture(scope="module")
def address(main_job):
    with served(main_job / "home") as address:
        yield address


@pytest.fixture(scope="module")
def browser():
    expect.set_options(timeout=PATIENCE_MS)
    try:
        with launched() as browser:
            yield browser
    except NoBrowser as error:
        pytest.skip(str(error))


@dataclass
class Watched:
    """What a page must not do, and the bad answers that a test provokes."""

    address: str
    expected: set[str] = field(default_factory=set)
    complaints: list[str] = field(default_factory=list)

    def follow(self, page):
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("requestfailed", self._failed)
        page.on("request", self._request)

    def _console(self, message):
        if message.type in ("error", "warning"):
            self.complaints.append(f"console: {message.text}")

    def _failed(self, request):
        # the page itself drops a question when another start is chosen
        if request.failure != "net::ERR_ABORTED":
            self.complaints.append(f"failed: {request.url} {request.failure}")

    def _request(self, request):
        if not request.url.startswith((f"{self.address}/", "data:", "blob:")):
            self.complaints.append(f"elsewhere: {request.url}")

    @property
    def unexpected(self):
        return [one for one in self.complaints if not any(text in one for text in self.expected)]


@pytest.fixture
def watched(address):
    return Watched(address)


@pytest.fixture
def opened(browser, watched):
    """Pages of chosen sizes and colours; in the end none of them may have complained."""
    contexts = []

    def open_page(path="/", viewport=WIDE, scheme="light", before=None):
        context = browser.new_context(viewport=viewport, color_scheme=scheme, accept_downloads=True)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        watched.follow(page)
        if before:
            before(page)
        page.goto(watched.address + path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert watched.unexpected == []


@pytest.fixture
def page(opened):
    """What-if with the first curve drawn."""
    page = opened()
    page.locator("html[data-drawn]").wait_for(state="attached")
    return page


@contextmanager
def redrawn(page):
    """Waits for the curve that follows from what is done inside."""
    before = page.locator("html").get_attribute("data-drawn")
    yield
    page.locator(f"html:not([data-drawn='{before}'])").wait_for(state="attached")


def rested(page, name, value):
    """Waits until the address remembers a value of the configuration, and returns what else it does."""

    def remembered(url):
        query = parse_qs(urlsplit(url).query)
        return json.loads(query.get("configuration", ["{}"])[0]).get(name) == value

    page.wait_for_url(remembered)
    return parse_qs(urlsplit(page.url).query)


def trace(page, name):
    return page.evaluate(
        "name => { const one = document.getElementById('chart').data.find(trace => trace.name === name);"
        " return one && { x: [...one.x], y: [...one.y], text: [...one.text ?? []] }; }",
        name,
    )


def headline(page):
    return page.locator("#headline h2").inner_text()


def csv_of(rows):
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def upload(page, content, name="requests.csv"):
    page.locator("#file").set_input_files(files=[{"name": name, "mimeType": "text/plain", "buffer": content}])
    page.get_by_role("button", name="Answer the file").click()


def test_a_slider_moved_by_keyboard_changes_value_and_answer(page):
    slider, exact = page.locator("#slide-message_bytes"), page.locator("#field-message_bytes")
    before = headline(page)
    assert exact.input_value() == "4096"
    for _ in range(20):
        with redrawn(page):
            slider.press("ArrowRight")
    moved = int(exact.input_value())
    assert moved > 4096
    assert slider.get_attribute("aria-valuetext") == f"{moved:,} bytes"
    assert headline(page) != before
    assert trace(page, "here")["x"] == [moved]


def test_a_slider_moved_by_mouse_changes_value_and_answer(page):
    slider, exact = page.locator("#slide-message_bytes"), page.locator("#field-message_bytes")
    before, box = headline(page), slider.bounding_box()
    with redrawn(page):
        slider.click(position={"x": box["width"] * 0.9, "y": box["height"] / 2})
    assert int(exact.input_value()) > 20_000
    assert headline(page) != before


def test_an_exact_value_beyond_the_slider_is_taken(page):
    exact, slider = page.locator("#field-message_bytes"), page.locator("#slide-message_bytes")
    with redrawn(page):
        exact.fill("900001")
    assert slider.input_value() == slider.get_attribute("max")
    rested(page, "message_bytes", 900_001)
    assert exact.input_value() == "900001"


def test_how_long_a_redraw_took_can_be_read(page):
    with redrawn(page):
        page.locator("#slide-cpus").press("ArrowRight")
    took = page.evaluate("performance.getEntriesByName('redraw').map(one => one.duration)")
    assert len(took) == int(page.locator("html").get_attribute("data-drawn"))
    assert all(one > 0 for one in took)


def test_the_curve_is_also_told_in_words_and_figures(page):
    told = page.locator("#chart").get_attribute("aria-label")
    assert told.startswith("throughput along message bytes: from ")
    page.get_by_text("The curve as figures").click()
    rows = page.locator("#figures tbody tr")
    expect(rows.first).to_be_visible()
    assert rows.count() == len(trace(page, "hybrid")["x"])


def test_a_field_with_names_is_drawn_without_a_line_between_them(page):
    with redrawn(page):
        page.locator("#along").select_option("persistent")
    assert trace(page, "hybrid")["x"] == ["false", "true"]
    assert trace(page, "here")["x"] == ["false"]


def test_a_measured_configuration_brings_its_point_with_its_origin(page):
    page.locator("#measured").fill("wbimb 10.8.1.4 1153")
    page.locator("#measured").press("ArrowDown")
    with redrawn(page):
        page.locator("#measured").press("Enter")
    origin = "wbimb-v5-solaris, table 10.8.1.4, line 1153"
    expect(page.locator("#started")).to_contain_text(origin)
    measured = trace(page, "measured")
    (at,) = [place for place, text in enumerate(measured["text"]) if origin in text]
    assert measured["y"][at] == 144
    assert "printed 144.00" in measured["text"][at]
    x, y = page.evaluate(
        "([x, y]) => { const { xaxis, yaxis } = document.getElementById('chart')._fullLayout;"
        " const box = document.getElementById('chart').getBoundingClientRect();"
        " return [box.x + xaxis._offset + xaxis.d2p(x), box.y + yaxis._offset + yaxis.d2p(y)]; }",
        [measured["x"][at], measured["y"][at]],
    )
    page.mouse.move(x, y)
    expect(page.locator("#chart .hoverlayer")).to_contain_text(origin)


def test_measured_configurations_are_found_by_mouse_and_word(page):
    page.locator("#measured").fill("rules hub queue_managers")
    option = page.locator("#measured-list li", has_text="mqsi-v11-solaris").first
    with redrawn(page):
        option.click()
    expect(page.locator("#family")).to_have_value("rules_hub")
    page.locator("#measured").fill("no such words")
    expect(page.locator("#measured-list")).to_have_text("Nothing measured has all these words.")
    page.locator("#measured").press("Escape")
    expect(page.locator("#measured-list")).to_be_hidden()


def test_an_advice_that_is_tried_changes_the_parameter(page):
    exact = page.locator("#field-execution_groups")
    before, groups = headline(page), int(exact.input_value())
    with redrawn(page):
        page.locator("#advice button", has_text="execution groups").first.click()
    assert int(exact.input_value()) > groups
    expect(exact).to_be_focused()
    assert headline(page) != before
    rested(page, "execution_groups", int(exact.input_value()))


def test_a_bad_value_is_told_beside_its_field_and_the_page_goes_on(page, watched):
    watched.expected.add("422")
    cpus = page.locator("#field-cpus")
    before = headline(page)
    cpus.fill("0")
    expect(cpus).to_have_attribute("aria-invalid", "true")
    problem = page.locator("#field-cpus-problem")
    expect(problem).to_contain_text("1")
    assert problem.get_attribute("id") in cpus.get_attribute("aria-describedby").split()
    expect(page.locator("#chart")).to_have_class("js-plotly-plot stale")
    assert headline(page) == before
    with redrawn(page):
        cpus.fill("8")
    expect(problem).to_have_count(0)
    assert cpus.get_attribute("aria-invalid") is None
    expect(page.locator("#chart")).not_to_have_class("stale")


def test_an_empty_optional_field_is_not_told_and_an_empty_required_one_is_a_problem(page, watched):
    watched.expected.add("422")
    with redrawn(page):
        page.locator("#field-memory_mb").fill("")
    rested(page, "memory_mb", None)
    page.locator("#field-cpus").fill("")
    expect(page.locator("#field-cpus-problem")).to_be_visible()


def test_reloading_keeps_the_state(page):
    with redrawn(page):
        page.locator("#along").select_option("cpus")
    page.locator("#lines input[value=nearest]").check()
    with redrawn(page):
        page.locator("#field-cpus").fill("7")
    query = rested(page, "cpus", 7)
    assert query["along"] == ["cpus"]
    answer = headline(page)
    page.reload()
    page.locator("html[data-drawn]").wait_for(state="attached")
    expect(page.locator("#field-cpus")).to_have_value("7")
    expect(page.locator("#along")).to_have_value("cpus")
    expect(page.locator("#lines input[value=nearest]")).to_be_checked()
    assert headline(page) == answer


@pytest.mark.parametrize(
    "query",
    ["configuration=%7Bbroken", "configuration=%7B%22family%22%3A%22none%22%7D", "configuration=7&along=x"],
)
def test_an_address_without_sense_is_ignored(opened, query):
    page = opened(f"/?{query}#nowhere")
    page.locator("html[data-drawn]").wait_for(state="attached")
    expect(page.locator("#field-message_bytes")).to_have_value("4096")


def test_a_server_that_is_gone_is_told_in_a_sentence(page, watched):
    watched.expected |= {"ERR_FAILED", "failed:"}
    page.route("**/api/curve", lambda route: route.abort("failed"))
    page.locator("#slide-cpus").press("ArrowRight")
    expect(page.locator("#parameters [role=alert]")).to_contain_text("does not answer")
    page.unroute("**/api/curve")
    with redrawn(page):
        page.locator("#slide-cpus").press("ArrowRight")
    expect(page.locator("#parameters [role=alert]")).to_be_empty()


def test_without_a_model_it_says_what_to_do(opened):
    def without_model(page):
        told = {"model": None, "problem": "no model yet: run `make run`", "links": {}}
        page.route("**/api/home", lambda route: route.fulfill(json=told))

    page = opened(before=without_model)
    expect(page.locator("#whatif-panel")).to_contain_text("run `make run`")
    expect(page.locator("form:visible")).to_have_count(0)
    expect(page.locator("#links")).to_contain_text("Airflow: not running")


def test_a_sizing_tells_the_cheapest_and_why_others_do_not_hold(page):
    page.get_by_role("link", name="Sizing").click()
    page.locator("#target").fill("300")
    page.locator("#growth").fill("3")
    page.get_by_role("button", name="Find the cheapest").click()
    verdict = page.locator("#sizing-result h2")
    expect(verdict).to_contain_text("The cheapest that holds 300 msgs/s with 90% confidence")
    expect(page.locator("#sizing-result .verdict")).to_contain_text("At 3% growth a month it holds for")
    rejected = page.get_by_role("region", name="Cheaper, but does not hold")
    expect(rejected.locator("tbody tr").first.locator("td").last).not_to_be_empty()
    expect(page.get_by_role("region", name="Which change buys most")).to_be_visible()
    expect(page.get_by_role("region", name="Reasons")).to_contain_text("too slow")

    cheapest = page.get_by_role("region", name="What holds, cheapest first").locator("tbody tr").first
    bought = cheapest.locator("td").nth(1).inner_text()
    with redrawn(page):
        cheapest.get_by_role("button").click()
    expect(page.get_by_role("link", name="What if")).to_have_attribute("aria-current", "page")
    assert f"execution groups {page.locator('#field-execution_groups').input_value()}" in bought
    assert f"processors {page.locator('#field-cpus').input_value()}" in bought


def test_one_more_parameter_can_be_varied_in_a_sizing(opened):
    page = opened("/#sizing")
    page.locator("#more-options").select_option("message_bytes")
    page.locator("#add-option").click()
    expect(page.locator("#option-message_bytes")).to_be_focused()
    page.locator("#option-message_bytes").fill("1024, 2048")
    with page.expect_request("**/api/size") as asked:
        page.get_by_role("button", name="Find the cheapest").click()
    assert asked.value.post_data_json["options"]["message_bytes"] == [1024, 2048]
    expect(page.locator("#sizing-result h2")).to_be_visible()


def test_what_a_sizing_cannot_take_is_told_beside_its_field(opened, watched):
    watched.expected.add("422")
    page = opened("/#sizing")
    page.locator("#target").fill("-5")
    page.get_by_role("button", name="Find the cheapest").click()
    expect(page.locator("#target-problem")).to_be_visible()
    page.locator("#target").fill("300")
    page.locator("#confidence").fill("12")
    page.get_by_role("button", name="Find the cheapest").click()
    expect(page.locator("#confidence-problem")).to_have_text("between 50 and 99")
    expect(page.locator("#target-problem")).to_have_count(0)


def test_a_batch_with_a_bad_row_is_answered_told_and_downloaded(opened):
    page = opened("/#batch")
    good = flat_example("message_flow")
    upload(page, csv_of([good | {"request_id": "a"}, good | {"request_id": "b", "cpus": 0}]))
    expect(page.locator("#batch-result h2")).to_have_text("1 row answered, 0 without an answer, 1 rejected")
    reject = page.get_by_role("region", name="Rejected rows").locator("tbody td")
    row, request, column, reason = reject.all_inner_texts()
    assert (row, request, column) == ("2", "b", "cpus")
    assert "1" in reason
    with page.expect_download() as downloading:
        page.get_by_role("button", name="Download the answers").click()
    assert downloading.value.suggested_filename == "requests.predictions.csv"
    (answer,) = csv.DictReader(downloading.value.path().open())
    assert answer["request_id"] == "a"
    assert float(answer["value"]) > 0


def test_the_example_file_can_be_answered_as_it_is(opened):
    page = opened("/#batch")
    page.locator("#example-family").select_option("rules_hub")
    with page.expect_download() as downloading:
        page.get_by_role("button", name="Get the example").click()
    assert downloading.value.suggested_filename == "rules_hub.csv"
    upload(page, downloading.value.path().read_bytes())
    expect(page.locator("#batch-result h2")).to_have_text("3 rows answered, 0 without an answer, 0 rejected")


def test_files_that_cannot_be_answered_are_refused_beside_the_field(opened, watched):
    watched.expected.add("422")
    page = opened("/#batch")
    page.get_by_role("button", name="Answer the file").click()
    expect(page.locator("#file-problem")).to_have_text("choose a file")
    upload(page, b"nothing", "picture.png")
    expect(page.locator("#file-problem")).to_contain_text(".csv")
    upload(page, b"x" * 5_000_001)
    expect(page.locator("#file-problem")).to_contain_text("at most 5,000,000")


def test_findings_are_filtered_by_severity_rule_and_text(opened):
    page = opened("/#findings")
    rows = page.locator("#findings-table tbody tr")
    rows.first.wait_for()
    everything = rows.count()
    page.locator("#finding-severity").select_option("error")
    errors = rows.count()
    assert 0 < errors < everything
    assert set(rows.locator("td:first-child").all_inner_texts()) == {"error"}
    expect(page.locator("#findings-count")).to_contain_text(f"{errors} of {everything} findings")
    page.locator("#finding-rule").select_option("shifted_cells")
    page.locator("#finding-text").fill("mqseries-pubsub-aix 328")
    expect(rows).to_have_count(1)
    page.locator("#finding-text").fill("no such words")
    expect(rows).to_have_count(0)


def test_what_the_server_says_is_never_read_as_html(opened):
    planted = "<img src=x onerror=alert(1)>"

    def with_tags(page):
        finding = dict.fromkeys(("rule", "source_id", "printed", "expected", "message"), planted)
        told = {"findings": [finding | {"severity": "error", "line": 1}]}
        page.route("**/api/findings", lambda route: route.fulfill(json=told))

    page = opened("/#findings", before=with_tags)
    expect(page.locator("#findings-table td").last).to_have_text(planted)
    expect(page.locator("main img")).to_have_count(0)


@pytest.mark.parametrize("part", PARTS)
def test_a_narrow_window_does_not_scroll_sideways(opened, part):
    page = opened(f"/#{part}", viewport=NARROW)
    _fill(page, part)
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("part", PARTS)
def test_nothing_keeps_people_with_keyboard_or_screen_reader_out(opened, part, scheme):
    from axe_playwright_python.sync_playwright import Axe

    page = opened(f"/#{part}", scheme=scheme)
    _fill(page, part)
    for folded in page.locator("details:visible").all():
        folded.evaluate("one => { one.open = true; }")
    found = Axe().run(page).response["violations"]
    grave = [one for one in found if one["impact"] in ("serious", "critical")]
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in grave] == []


def expect_chart_to_fit(page):
    box, card = page.locator("#chart .main-svg").first, page.locator("#chart")
    expect(box).to_have_attribute("width", str(int(card.bounding_box()["width"])))


def test_a_change_of_the_window_is_followed_by_the_chart(page):
    for size in (NARROW, WIDE):
        page.set_viewport_size(size)
        expect_chart_to_fit(page)
        assert page.locator("#chart").bounding_box()["width"] < size["width"]


def test_a_chart_fits_that_was_out_of_sight_while_the_window_changed(page):
    page.get_by_role("link", name="Findings").click()
    page.set_viewport_size(NARROW)
    # until everybody has heard of it
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 300)))")
    page.get_by_role("link", name="What if").click()
    page.locator("#chart .main-svg").first.wait_for()
    expect_chart_to_fit(page)


def _fill(page, part):
    """Shows all that a part can show."""
    if part == "whatif":
        page.locator("html[data-drawn]").wait_for(state="attached")
        page.locator("#advice li").first.wait_for()
    if part == "sizing":
        page.get_by_role("button", name="Find the cheapest").click()
        page.locator("#sizing-result table").first.wait_for()
    if part == "batch":
        good = flat_example("message_flow")
        upload(page, csv_of([good, good | {"cpus": 0}]))
        page.locator("#batch-result table").first.wait_for()
    if part == "findings":
        page.locator("#findings-table table").wait_for()
