"""Every node of a flow does its work on real messages."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import replace
from xml.etree.ElementTree import fromstring

import psycopg
import pytest

from twin.core.workloads.live import LiveFlow
from twin.harness.brokers.interface import Delivery, NotOffered, Queue
from twin.harness.flow.addresses import FlowAddresses, addresses_of
from twin.harness.flow.aggregation import FanIn, FanOut, responding
from twin.harness.flow.database import ROWS, DatabasePlace, DatabaseProblem, Rows, prepared_database
from twin.harness.flow.formats import BadMessage, key_of, parse, sample, values_of, write
from twin.harness.flow.nodes import computing, filtering, mapping, ordering
from twin.harness.flow.offered import refuse_what_is_not_offered
from twin.harness.flow.outputs import LABEL, to_label, to_queue
from twin.harness.flow.plan import Plan
from twin.harness.flow.stages import Seat, opened_stages

FORMATS = ("generic_xml", "mrm_xml", "mrm_cwf", "mrm_tds")
XML = {"input_format": "generic_xml", "output_format": "generic_xml"}


def flow(**columns):
    return LiveFlow(**{"node": "trivial", "message_bytes": 1024, "persistent": False} | columns)


def compute(esql, **columns):
    return flow(**{"node": "compute", "esql": esql, "compute_nodes": 1} | XML | columns)


def delivered(*bodies, **headers):
    return [Delivery(body, headers) for body in bodies]


def with_first(name, text, format="generic_xml"):
    """A sample whose first order has another customer or balance."""
    tree = parse(format, sample(format, 1024))
    tree.find(f"Order/{name}").text = text
    return write(format, tree)


def outcome(workload, *bodies, database=None, **headers):
    with opened_stages(Plan(workload, "t", [], database), Seat()) as stages:
        return stages[0].work(delivered(*bodies, **headers))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("message_bytes", [1024, 4096, 65536])
def test_a_sample_has_the_asked_size_and_31_fields(format, message_bytes):
    body = sample(format, message_bytes)
    assert len(body) == message_bytes
    values = values_of(parse(format, body))
    assert len(values) == 31
    assert [sum(type(one) is kind for one in values) for kind in (int, float, str)] == [10, 10, 11]


@pytest.mark.parametrize("format", FORMATS)
def test_a_sample_that_is_too_small_still_has_its_fields(format):
    assert len(values_of(parse(format, sample(format, 10)))) == 31


def test_a_sample_of_no_format_is_just_bytes():
    assert len(sample("none", 1024)) == 1024
    assert sample("none", 0) == b""


def test_samples_differ_by_their_number():
    assert key_of("mrm_tds", sample("mrm_tds", 500, 7)) == 7
    assert key_of("none", sample("none", 500, 7)) != key_of("none", sample("none", 500, 8))


@pytest.mark.parametrize("source", FORMATS)
@pytest.mark.parametrize("target", FORMATS)
def test_a_conversion_and_back_gives_the_same_message(source, target):
    there = computing(compute("convert", input_format=source, output_format=target))
    back = computing(compute("convert", input_format=target, output_format=source))
    body = sample(source, 2048, 5)
    converted = there(body)
    assert values_of(parse(target, converted)) == values_of(parse(source, body))
    assert back(converted) == body


def test_a_mapping_is_a_conversion():
    drawn = mapping(flow(node="mapping", input_format="mrm_cwf", output_format="mrm_tds"))
    assert values_of(parse("mrm_tds", drawn(sample("mrm_cwf", 900)))) == values_of(
        parse("mrm_cwf", sample("mrm_cwf", 900))
    )


@pytest.mark.parametrize("format", FORMATS)
def test_a_message_of_another_format_is_told(format):
    with pytest.raises(BadMessage, match=f"a message of 8 bytes is not {format}: "):
        parse(format, b"anything")
    with pytest.raises(BadMessage, match=f"a message of 8 bytes is not {format}: "):
        filtering(flow(node="filter", input_format=format))(b"anything")


def test_described_xml_with_other_fields_is_told():
    body = sample("generic_xml", 1024).replace(b"Balance", b"Balanced")
    assert parse("generic_xml", body).find("Order/Balanced") is not None
    with pytest.raises(BadMessage, match="not mrm_xml: its fields are not those"):
        parse("mrm_xml", body)


def test_swift_messages_are_not_offered():
    with pytest.raises(NotOffered, match="do not know the format swift_mt543: choose one of generic_xml"):
        sample("swift_mt543", 6449)


@pytest.mark.parametrize("format", FORMATS)
def test_a_filter_passes_and_rejects_by_a_field(format):
    node = filtering(flow(node="filter", input_format=format))
    body = sample(format, 4096)
    assert node(body) is body
    assert node(with_first("Customer", "Shop", format)) is None


def test_a_filter_looks_no_further_than_its_field():
    node = filtering(flow(node="filter", input_format="generic_xml"))
    body = sample("generic_xml", 4096)[:1500] + b"<no XML from here"
    assert node(body) is body


def test_a_rejected_message_is_done_with_and_put_nowhere():
    body = with_first("Customer", "Shop")
    done = outcome(flow(node="filter", input_format="generic_xml"), body, sample("generic_xml", 1024))
    assert [one.body for one in done.puts] == [sample("generic_xml", 1024)]
    assert [one.body for one in done.finished] == [body, sample("generic_xml", 1024)]


def test_the_simple_program_changes_one_field():
    body = sample("generic_xml", 1024)
    before, after = values_of(fromstring(body)), values_of(fromstring(computing(compute("simple"))(body)))
    assert [at for at in range(31) if before[at] != after[at]] == [1]
    assert after[1] == "x"


@pytest.mark.parametrize("columns", [{}, {"program_repeats": 5}, {"compute_nodes": 5}, {"copy_nodes": 2}])
def test_the_complex_program_makes_a_component_of_each_item(columns):
    tree = fromstring(computing(compute("complex", **columns))(sample("generic_xml", 4096)))
    items, components = tree.findall("Order/Item"), tree.findall("ProcessingPath/Component")
    assert len(components) == len(items) == 8
    for item, component in zip(items, components, strict=True):
        assert component.findtext("Name") == item.findtext("Name")
        assert component.find("Transport").attrib == {"Kind": "A"}
        assert component.findtext("Transport/Queue") == item.findtext("Count")
    assert len(tree.findtext("Filler")) > 3000


@pytest.mark.parametrize("repeats", [1, 3])
def test_the_nested_select_bills_what_costs_something_to_customers(repeats):
    body = sample("generic_xml", 1024, 3)
    tree = fromstring(computing(compute("nested_select", program_repeats=repeats))(body))
    # of two orders one is the shop's own, of four items one is a gift
    assert [one.findtext("Customer/Customer") for one in tree.findall("Statement")] == ["Customer0003"]
    articles = tree.findall("Statement/Purchases/Article")
    assert [one.findtext("Name") for one in articles] == ["Article 0001", "Article 0002", "Article 0003"]
    assert [float(one.findtext("Cost")) for one in articles] == pytest.approx([3.0, 6.0, 9.0])
    owed = sum(float(one.findtext("Cost")) * int(one.findtext("Count")) for one in articles)
    assert float(tree.findtext("Statement/Amount")) == pytest.approx(owed)


def test_compute_nodes_leave_the_message_that_came_as_it_was():
    body = sample("generic_xml", 1024)
    node = computing(compute("simple"))
    assert node(body) == node(body) != body


def test_flow_order_runs_its_first_branch_and_puts_what_the_second_makes(monkeypatch):
    copied = []
    monkeypatch.setattr("twin.harness.flow.nodes.copy_node", lambda tree: copied.append(tree) or tree)
    workload = compute("simple", node="flow_order", copy_nodes=2)
    body = sample("generic_xml", 1024)
    assert ordering(workload)(body) == computing(compute("simple"))(body)
    assert len(copied) == 2
    assert len(outcome(workload, body).puts) == 1


def test_a_label_is_taken_by_the_message():
    output = to_label(Queue("out"), 100, "mrm_tds")
    labels = [output(sample("mrm_tds", 500, number), {"id": "1"})[0].headers for number in (1, 42, 142)]
    assert labels == [{"id": "1", LABEL: f"label-{at}"} for at in (1, 42, 42)]


def test_every_message_takes_the_only_label():
    workload = flow(node="route_to_label", destinations=1)
    puts = outcome(workload, *(sample("none", 100, number) for number in range(5))).puts
    assert {(one.to.name, one.headers[LABEL]) for one in puts} == {("t-out", "label-0")}


@pytest.mark.parametrize("format", FORMATS)
def test_publication_by_content_reaches_those_whose_condition_is_met(format):
    workload = flow(routing="content", subscribers=4, input_format=format)

    def receivers(body):
        return [one.to.name for one in outcome(workload, body).puts]

    assert receivers(with_first("Balance", "600.0", format)) == ["t-subscriber-0", "t-subscriber-1"]
    assert receivers(with_first("Balance", "249.0", format)) == []
    assert receivers(sample(format, 1024)) == [f"t-subscriber-{at}" for at in range(4)]


def test_publication_by_topic_is_one_message_to_the_topic():
    (message,) = outcome(flow(routing="topic", subscribers=4), b"body", id="7").puts
    assert (message.to, message.body) == (
        FlowAddresses.of(flow(routing="topic", subscribers=4), "t").topic,
        b"body",
    )
    assert message.headers == {"id": "7"}


@pytest.fixture
def postgresql():
    where = "host=127.0.0.1 user=postgres dbname=test connect_timeout=2"
    try:
        psycopg.connect(where).close()
    except psycopg.OperationalError as error:
        pytest.skip(f"PostgreSQL is not reachable on this machine: {error}")
    return where


@pytest.fixture
def sqlite(tmp_path):
    with prepared_database("sqlite", str(tmp_path)) as place:
        yield place


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request, tmp_path):
    where = str(tmp_path) if request.param == "sqlite" else request.getfixturevalue("postgresql")
    with prepared_database(request.param, where) as place:
        yield place


def test_an_inserted_row_is_there_until_it_is_deleted(database):
    with closing(Rows(database)) as rows, closing(Rows(database)) as others:
        rows.insert(5, b"content")
        assert rows.count() == ROWS + 1
        # nobody else sees it
        assert others.count() == ROWS
        rows.delete(5)
        rows.commit()
        assert rows.count() == others.count() == ROWS


@pytest.mark.parametrize(("operation", "changes"), [("insert_delete", 0), ("update", 3), ("read", 0)])
def test_a_database_node_passes_the_message_and_commits_once(database, operation, changes):
    workload = flow(node="database", database_operation=operation, database=database.kind)
    bodies = [sample("none", 100, number) for number in range(3)]
    done = outcome(workload, *bodies, database=database)
    assert [one.body for one in done.puts] == bodies
    with closing(Rows(database)) as rows:
        assert (rows.count(), rows.changes()) == (ROWS, changes)


def test_an_update_changes_the_row_of_the_message(database):
    workload = flow(
        node="database", database_operation="update", database=database.kind, input_format="mrm_tds"
    )
    body = sample("mrm_tds", 500, 17)
    outcome(workload, body, database=database)
    with closing(Rows(database)) as rows:
        assert rows.read(17) == body
        assert rows.read(18) == b"content"


def test_what_is_not_committed_is_gone(sqlite):
    with closing(Rows(sqlite)) as rows:
        rows.update(1, b"new")
    with closing(Rows(sqlite)) as rows:
        assert rows.read(1) == b"content"


def test_sqlite_forces_what_it_commits(sqlite):
    with closing(Rows(sqlite)) as rows:
        # 2 is FULL
        assert rows._execute("PRAGMA synchronous").fetchone() == (2,)
        assert rows._execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_prepared_table_is_gone_afterwards(tmp_path, postgresql):
    with prepared_database("sqlite", str(tmp_path)):
        assert list(tmp_path.iterdir())
    assert list(tmp_path.iterdir()) == []
    with prepared_database("postgresql", postgresql) as place:
        pass
    with (
        closing(Rows(place)) as rows,
        pytest.raises(DatabaseProblem, match=r"refuses SELECT.*does not exist"),
    ):
        rows.count()


def test_a_database_that_is_not_there_is_told(tmp_path):
    with pytest.raises(DatabaseProblem, match="SQLite cannot open"):
        Rows(DatabasePlace("sqlite", str(tmp_path / "no" / "folder"), "t"))
    with pytest.raises(DatabaseProblem, match="PostgreSQL cannot be reached"):
        Rows(DatabasePlace("postgresql", "host=127.0.0.1 port=1 dbname=none", "t"))


def test_a_missing_client_of_postgresql_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(DatabaseProblem, match="install brokertwin with its extra `cluster`"):
        Rows(DatabasePlace("postgresql", "host=127.0.0.1", "t"))


def test_a_flow_with_another_database_than_prepared_is_told(sqlite):
    workload = flow(node="database", database_operation="read", database="postgresql")
    with pytest.raises(DatabaseProblem, match="needs a prepared database of postgresql"):
        outcome(workload, database=sqlite)


def replies_to(*bodies):
    """Of a fan-out and its responder: a list for each message."""
    asked = FanOut(Queue("requests"), Queue("replies"))(
        [Delivery(body, {"id": str(at)}) for at, body in enumerate(bodies)]
    )
    assert {one.to for one in asked.puts} == {Queue("requests")}
    answered = responding(False)([Delivery(one.body, one.headers, one) for one in asked.puts])
    assert {one.to for one in answered.puts} == {Queue("replies")}
    replies = [Delivery(one.body, one.headers, at) for at, one in enumerate(answered.puts)]
    return [replies[at : at + 4] for at in range(0, len(replies), 4)]


@pytest.mark.parametrize("body", [b"", b"abc", b"four quarters make the whole", sample("none", 1024)])
def test_four_replies_make_the_message_again(body):
    (replies,) = replies_to(body)
    fan_in = FanIn(to_queue(Queue("out")))
    for reply in reversed(replies[1:]):
        assert fan_in([reply]).puts == []
    (message,) = fan_in(replies[:1]).puts
    assert (message.to, message.body, message.headers) == (Queue("out"), body, {"id": "0"})


def test_interleaved_sets_are_kept_apart_and_done_with_in_the_order_they_came():
    first, second = replies_to(b"first message", b"second message")
    fan_in = FanIn(to_queue(Queue("out")))
    early = fan_in([first[2], second[0], first[0], second[3], second[1]])
    assert (early.puts, early.finished) == ([], [])
    full = fan_in([second[2]])
    assert [one.body for one in full.puts] == [b"second message"]
    # the oldest reply is of the set that still waits
    assert full.finished == []
    last = fan_in([first[3], first[1]])
    assert [one.body for one in last.puts] == [b"first message"]
    assert last.finished == [
        first[2],
        second[0],
        first[0],
        second[3],
        second[1],
        second[2],
        first[3],
        first[1],
    ]


def test_a_reply_that_comes_twice_counts_once():
    (replies,) = replies_to(b"message")
    fan_in = FanIn(to_queue(Queue("out")))
    assert fan_in([replies[0], replies[0], replies[1], replies[2]]).puts == []
    done = fan_in([replies[3]])
    assert len(done.puts) == 1
    assert len(done.finished) == 5


def test_each_instance_of_an_aggregation_has_replies_of_its_own():
    workload = flow(node="aggregation", queues=2, execution_groups=2, instances=3)
    seats = [Seat(queue, group, at) for queue in range(2) for group in range(2) for at in range(3)]
    sources = []
    for seat in seats:
        with opened_stages(Plan(workload, "t", []), seat) as (out, middle, last):
            assert out.source == Queue(f"t-in-{seat.queue}")
            assert middle.source == Queue("t-requests")
            sources.append(last.source)
    assert sources == list(FlowAddresses.of(workload, "t").replies)
    assert len(set(sources)) == 12


def test_a_flow_tells_all_addresses_it_needs():
    assert addresses_of(flow(persistent=True, queues=2), "t") == [
        Queue("t-in-0", True), Queue("t-in-1", True), Queue("t-out", True)
    ]  # fmt: skip
    between = flow(brokers=2)
    assert addresses_of(between, "t", 0) == [Queue("t-in-0")]
    assert addresses_of(between, "t", 1) == [Queue("t-out")]


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"node": "filter"}, "say their input_format"),
        (
            {"node": "compute", "esql": "simple", "compute_nodes": 1, "input_format": "mrm_cwf"},
            "say their output",
        ),
        ({"node": "compute", **XML}, "needs compute_nodes with esql"),
        ({"node": "compute", "esql": "simple", **XML}, "go together"),
        ({"input_format": "mrm_tds"}, "reads no message"),
        ({"output_format": "mrm_tds"}, "makes no new message"),
        ({"input_format": "swift_mt543"}, "do not know the format swift_mt543"),
        ({"copy_nodes": 1}, "belong to the nodes compute and flow_order"),
        ({"program_repeats": 2}, "no program to repeat"),
        ({"node": "database"}, "database_operation belongs"),
        ({"database": "sqlite"}, "database belongs"),
        ({"node": "route_to_label"}, "destinations belong"),
        ({"destinations": 3}, "destinations belong"),
        ({"routing": "topic"}, "routing and subscribers go together"),
        ({"routing": "content", "subscribers": 2}, "routing by content reads messages"),
        ({"brokers": 3}, "not through more"),
        ({"node": "aggregation", "brokers": 2}, "on one broker"),
        ({"queues": 100}, "100 processes"),
        ({"instances": 600}, "600 threads"),
    ],
)
def test_a_flow_that_is_not_offered_is_refused(columns, reason):
    with pytest.raises(NotOffered, match=reason):
        refuse_what_is_not_offered(flow(**columns))


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"output_format": "mrm_tds"}, "only generic_xml can carry"),
        ({"compute_nodes": 2}, "leaves no orders"),
        ({"node": "flow_order"}, "first branch has copy_nodes"),
    ],
)
def test_a_program_where_it_does_not_fit_is_refused(columns, reason):
    with pytest.raises(NotOffered, match=reason):
        refuse_what_is_not_offered(compute("nested_select", **columns))


def test_a_plan_goes_to_another_process_whole(sqlite):
    from twin.harness.brokers.registry import Place

    plan = Plan(compute("simple", routing=None), "t", [Place("nats", "nats://127.0.0.1:1")], sqlite)
    assert Plan.of_text(plan.as_text()) == plan
    assert Plan.of_text(replace(plan, database=None).as_text()).database is None
