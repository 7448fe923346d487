"""A broker's processes on this machine, found by where they listen."""

from __future__ import annotations

import ipaddress

import psutil


def listening(host: str, port: int, name: str) -> tuple[int, ...]:
    """Those of this name; none where the broker is elsewhere or hidden from us. The name matters: behind a
    forwarded port sits another program, whose processor time is not the broker's."""
    if not _is_loopback(host):
        return ()
    try:
        sockets = psutil.net_connections(kind="tcp")
    except (psutil.Error, OSError):
        return ()
    found = {
        one.pid
        for one in sockets
        if one.status == psutil.CONN_LISTEN and one.laddr.port == port and one.pid is not None
    }
    return tuple(sorted(pid for pid in found if _name(pid).startswith(name)))


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _name(pid: int) -> str:
    try:
        return str(psutil.Process(pid).name())
    except psutil.Error:
        return ""
