"""Where a service listens, and how it is reached from this machine."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address
from urllib.parse import urlsplit

# an address that stands for all of this machine's, and the one among them to ask at
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104


def is_loopback(host: str | None) -> bool:
    """Only this machine can reach it. A name could lead anywhere, but for the one that may not."""
    if host == "localhost":
        return True
    try:
        address = ip_address(host or "")
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return address.is_loopback


def asked_at(host: str) -> str:
    return _EVERYWHERE.get(host, host)


def url_of(host: str, port: int) -> str:
    """As this machine's own processes and browsers ask for it."""
    place = asked_at(host)
    return f"http://[{place}]:{port}" if ":" in place else f"http://{place}:{port}"


def seen_by(reader: str | None, url: str, host: str) -> str:
    """The address of a service for who reached this machine by the name `reader`: it has the same name there
    if it listens everywhere."""
    parts = urlsplit(url)
    if reader is None or parts.port is None or host not in _EVERYWHERE:
        return url
    return url_of(reader, parts.port) + parts.path
