"""N: no packet leaves, none comes in, and nobody shares a name space with the host or with another container."""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hostility import attack

from orchestrator.domain.outcomes import Ending
from orchestrator.runtime.workers import spawn

pytestmark = pytest.mark.docker

Found = Mapping[str, Any]
UNREACHABLE = {"ENETUNREACH", "EHOSTUNREACH", "EPERM", "EACCES", "EADDRNOTAVAIL", "ENODEV"}
TUNNELS = {"tunl0", "sit0", "ip6tnl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "ip6gre0"}
"""Interfaces that a kernel makes by itself in every new name space, down and without an address."""


@pytest.fixture(scope="session")
def host_socket() -> Iterator[str]:
    """An abstract socket of the host that somebody listens on."""
    name = f"redteam-{secrets.token_hex(8)}"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"\0{name}")
        listening.listen()
        yield name


def resolvers() -> list[str]:
    lines = Path("/etc/resolv.conf").read_text().splitlines() if Path("/etc/resolv.conf").exists() else []
    return [line.split()[1] for line in lines if line.startswith("nameserver ")]


@pytest.fixture
def found(survey: Callable[..., Found], host_socket: str) -> Found:
    return survey(
        "network", HOST_RESOLVERS=[one for one in resolvers() if not one.startswith("127.")], HOST_ABSTRACT=host_socket
    )


def answers(found: Found, *prefixes: str) -> dict[str, str]:
    return {name: answer for name, answer in found.items() if name.startswith(prefixes)}


@pytest.mark.probe("N1", "TCP to public addresses, the gateway, private nets and cloud metadata")
def test_no_address_can_be_connected_to(found: Found) -> None:
    tried = answers(found, "tcp-")
    assert len(tried) >= 8
    assert set(tried.values()) <= UNREACHABLE, tried
    assert found["seconds"] < 5  # refused at once, not timed out
    assert found["loopback-own"] == "allowed"  # the survey can connect


@pytest.mark.probe("N2", "DNS by the resolver and by raw UDP; the host's resolver in /etc/resolv.conf")
def test_no_query_leaves_and_the_hosts_resolver_stays_unknown(found: Found) -> None:
    assert found["resolve"] != "allowed"
    assert found["resolve-host"] != "allowed"
    assert set(answers(found, "udp-").values()) <= UNREACHABLE, answers(found, "udp-")
    shown = found["resolv.conf"] + found["hosts"]
    assert [one for one in resolvers() if one in shown and not one.startswith("127.")] == []


@pytest.mark.probe("N4", "a listening socket on 127.0.0.1, looked for from another container and from the host")
def test_a_listening_socket_is_seen_by_nobody_else(analyse: Callable[..., Any]) -> None:
    listener = spawn("listener", lambda: analyse(attack("listen")))
    seeker = spawn("seeker", lambda: analyse(attack("seek")))
    stop = threading.Event()

    def from_the_host() -> bool:
        while not stop.wait(0.2):
            with socket.socket() as peer:
                if peer.connect_ex(("127.0.0.1", 47113)) == 0:
                    return True
        return False

    host = spawn("host", from_the_host)
    assert listener.join(90)
    assert seeker.join(90)
    stop.set()
    assert host.join(10)
    assert listener.result().outcome.ending is Ending.OK
    assert listener.result().output == b"alone\n"
    assert seeker.result().output == b"end\n"
    assert host.result() is False


@pytest.mark.probe("N5", "AF_VSOCK to the hypervisor")
def test_no_vsock_is_opened(found: Found, expected: Found) -> None:
    assert set(answers(found, "socket-vsock").values()) <= expected["no-socket"]


@pytest.mark.probe("N6", "packet, raw, XDP, crypto, Bluetooth, CAN, TIPC, SCTP and other rare sockets")
def test_only_plain_sockets_are_opened(found: Found, expected: Found) -> None:
    assert found["socket-control-tcp"] == "allowed"
    others = {
        name: answer
        for name, answer in answers(found, "socket-").items()
        if name not in {"socket-control-tcp", *expected["guest-sockets"]} and "netlink" not in name
    }
    assert len(others) > 15
    assert {name: answer for name, answer in others.items() if answer not in expected["no-socket"]} == {}


@pytest.mark.probe("N7", "netlink, and the list of interfaces")
def test_there_is_nothing_but_the_loopback_interface(found: Found, expected: Found) -> None:
    netlink = {k: v for k, v in answers(found, "socket-netlink").items() if k not in expected["guest-sockets"]}
    assert set(netlink.values()) <= expected["no-socket"], netlink
    assert set(found["interfaces"]) - TUNNELS == {"lo"}
    assert set(found["configured"]) <= {"lo"}


@pytest.mark.probe("N8", "abstract UNIX socket of the host")
def test_an_abstract_socket_of_the_host_is_not_there(found: Found, host_socket: str) -> None:
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(f"\0{host_socket}")  # it is there, on the host
    assert found["abstract-own"] == "allowed"
    assert found["abstract-host"] == "ECONNREFUSED"


@pytest.mark.probe("E1", "sockets of container engines and of the message bus")
def test_no_socket_of_an_engine_is_there(found: Found) -> None:
    tried = answers(found, "unix ")
    assert len(tried) >= 4
    assert set(tried.values()) <= {"ENOENT", "EACCES"}, tried
