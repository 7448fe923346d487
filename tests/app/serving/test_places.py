from __future__ import annotations

import pytest

from twin.app.serving.places import seen_by, url_of


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:5000"),
        ("0.0.0.0", "http://127.0.0.1:5000"),
        ("::", "http://[::1]:5000"),
        ("twin.example", "http://twin.example:5000"),
    ],
)
def test_this_machine_asks_where_a_service_listens(host, url):
    assert url_of(host, 5000) == url


@pytest.mark.parametrize(
    ("reader", "host", "seen"),
    [
        ("plans.example", "0.0.0.0", "http://plans.example:5000/ui"),
        ("fd00::7", "::", "http://[fd00::7]:5000/ui"),
        # one address is one address, and a reader behind a tunnel has it
        ("plans.example", "10.0.0.7", "http://10.0.0.7:5000/ui"),
        ("localhost", "127.0.0.1", "http://127.0.0.1:5000/ui"),
        (None, "0.0.0.0", "http://127.0.0.1:5000/ui"),
    ],
)
def test_a_reader_elsewhere_is_sent_to_the_name_that_brought_it_here(reader, host, seen):
    assert seen_by(reader, url_of(host, 5000) + "/ui", host) == seen
