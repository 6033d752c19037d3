"""Shaped links read their rate, touch nothing of the machine and leave nothing behind."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hakaru.errors import HakaruError
from hakaru.measure.truth import Unavailable, links
from hakaru.measure.truth.links import Host, hosts

from ._transfer import rates_mbit

IP = shutil.which("ip") or shutil.which("ip", path="/usr/sbin:/sbin") or "ip"


@contextmanager
def made(num: int, rate_mbit: float | list[float | None] | None) -> Iterator[list[Host]]:
    """Hosts; a skip where this machine cannot have any, which `unshare` must confirm."""
    try:
        with hosts(num, rate_mbit) as them:
            yield them
    except Unavailable as error:
        if shutil.which(IP) and _may_unshare():
            raise
        pytest.skip(str(error))


def _may_unshare() -> bool:
    program = shutil.which("unshare")
    return bool(program) and subprocess.run([str(program), "--net", "true"]).returncode == 0


@pytest.fixture
def root() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may make network namespaces")


def names() -> set[str]:
    listed = subprocess.run([IP, "netns", "list"], capture_output=True, text=True, check=True)
    return {line.split()[0] for line in listed.stdout.splitlines()}


@pytest.mark.alone
@pytest.mark.parametrize("rate_mbit", [200, 1000])
def test_a_transfer_reads_the_rate(root: None, rate_mbit: int) -> None:
    """Windows of 0.4 s; other load lowers what most of them read, so the best of some counts."""
    read: list[float] = []
    with made(2, rate_mbit) as (one, other):
        while len(read) < 12 and max(read, default=0) < 0.9 * rate_mbit:
            read += rates_mbit(one, other, rate_mbit * 50_000, windows=4)
    assert max(read) == pytest.approx(rate_mbit, rel=0.1)


def test_one_slow_host_is_slow_in_both_directions(root: None) -> None:
    with made(4, [1000, None, 200, 1000]) as (one, unshaped, slow, other):
        assert slow.payload_mbit == pytest.approx(198.5, abs=0.1)
        assert unshaped.payload_mbit is None
        for sender, receiver in ((one, slow), (slow, one)):
            assert max(rates_mbit(sender, receiver, 4_000_000)) < 300
        assert max(rates_mbit(one, other, 8_000_000)) > 300
        assert max(rates_mbit(unshaped, other, 20_000_000)) < 1_300


def test_the_machine_sees_nothing_and_all_goes_after_an_error(root: None) -> None:
    before = socket.if_nameindex()
    with pytest.raises(ZeroDivisionError), made(2, 100) as pair:
        assert socket.if_nameindex() == before
        shown = [*pair[0].prefix, IP, "-brief", "address"]
        lines = subprocess.run(shown, capture_output=True, text=True).stdout.splitlines()
        assert [line.split()[0].partition("@")[0] for line in lines] == ["lo", pair[0].interface]
        assert "127.0.0.1/8" in lines[0]
        assert f"{pair[0].address}/24" in lines[1]
        assert not _reaches(pair[0], "192.0.2.1")
        assert {host.name for host in pair} < names()
        1 / 0  # noqa: B018
    assert not [name for name in names() if name.startswith(f"hakaru-{os.getpid()}-")]


def _reaches(host: Host, address: str) -> bool:
    """A route out of the namespace would be a leak; nothing is sent for the question."""
    ask = "import socket, sys; socket.socket(type=socket.SOCK_DGRAM).connect((sys.argv[1], 9))"
    command = [*host.prefix, sys.executable, "-c", ask, address]
    return subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0


def test_what_a_dead_process_left_is_removed_and_nothing_else(root: None) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    left, running, foreign = f"hakaru-{dead.pid}-0-1", f"hakaru-{os.getpid()}-999-1", "hakaru-other"
    with made(1, None):
        try:
            for name in (left, running, foreign):
                subprocess.run([IP, "netns", "add", name], check=True)
            with hosts(1, None):
                assert names() & {left, running, foreign} == {running, foreign}
        finally:
            for name in names() & {left, running, foreign}:
                subprocess.run([IP, "netns", "delete", name], check=True)


def test_a_refused_command_is_reported_and_leaves_nothing(root: None) -> None:
    with made(1, None):  # skips where there are no namespaces at all
        pass
    with (
        pytest.raises(Unavailable, match=r"tc -n \S+ qdisc add dev eth0 .* failed: "),
        hosts(2, 1e-7),
    ):
        pass
    assert not [name for name in names() if name.startswith(f"hakaru-{os.getpid()}-")]


def test_missing_tools_and_rights_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links.shutil, "which", lambda name, path=None: f"/usr/sbin/{name}")
    monkeypatch.setattr(links.os, "geteuid", lambda: 1000)
    with pytest.raises(Unavailable, match="sudo"), hosts(2, 200):
        pass
    monkeypatch.setattr(links.shutil, "which", lambda name, path=None: None)
    with (
        pytest.raises(Unavailable, match=r"ip and tc not found.*apt-get install iproute2"),
        hosts(2, 200),
    ):
        pass


@pytest.mark.parametrize("rates", [[200.0], [200.0, 0.0], [200.0, float("nan")]])
def test_wrong_rates_are_refused(rates: list[float]) -> None:
    with pytest.raises(HakaruError), hosts(2, rates):
        pass
