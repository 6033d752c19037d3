"""Several hosts on one machine: network namespaces joined by a bridge, each link shaped to a known rate.

The bridge has a namespace of its own and nothing leads out, so that the machine's network is untouched.
"""

from __future__ import annotations

import itertools
import math
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from ipaddress import IPv4Network

from hakaru.errors import HakaruError
from hakaru.measure.truth import Unavailable, is_running
from hakaru.safety.text import one_line

INTERFACE = "eth0"
MOST_HOSTS = 250
MTU_BYTES = 9_000
LEAST_MTU_BYTES = 1_280
ETHERNET_BYTES = 14
TCP_BYTES = 52  # headers of IPv4 and TCP, with the time stamps that Linux sends
# A token bucket makes up for timers that come late, as they do in an idle virtual machine (half of them by
# 0.1 ms, one in ten by 0.7 ms or more), as far as its burst goes. The burst also passes at full speed after
# a pause, so a message reads right when it takes much longer. Segments larger than the burst are cut by tbf.
BURST_S = 0.002
LEAST_BURST_BYTES = 32_768
# What waits. With less, at low rates a sender drops its own segments before TCP has learned the rate.
QUEUE_S = 0.020
LEAST_QUEUE_BYTES = 1_000_000
COMMAND_TIMEOUT_S = 30.0

_NUMBERS = itertools.count()
_NAME = re.compile(r"hakaru-(\d+)-\d+-(?:\d+|bridge)")
_TOOL_FOLDERS = os.pathsep.join(("/usr/sbin", "/sbin", "/usr/local/sbin"))


@dataclass(frozen=True)
class Host:
    """One namespace with one link to the bridge."""

    name: str
    address: str
    interface: str
    rate_mbit: float | None  # of the link in each direction, Ethernet headers included
    mtu_bytes: int
    ip: str  # the program

    @property
    def prefix(self) -> list[str]:
        """Words before a command that run it on this host."""
        return [self.ip, "netns", "exec", self.name]

    @property
    def payload_mbit(self) -> float | None:
        """The rate that a TCP transfer of large messages should read: the link's without headers."""
        if self.rate_mbit is None:
            return None
        return self.rate_mbit * (self.mtu_bytes - TCP_BYTES) / (self.mtu_bytes + ETHERNET_BYTES)


@contextmanager
def hosts(
    num: int, rate_mbit: float | Sequence[float | None] | None, *, mtu_bytes: int = MTU_BYTES
) -> Iterator[list[Host]]:
    """So many hosts, all with one rate or each with its own; None leaves a link unshaped.

    Processes on a host should end before the block does: the links are cut then.
    """
    rates = _checked_rates(num, rate_mbit, mtu_bytes)
    tools = _Tools.find()
    tools.remove_leftovers()
    stem = f"hakaru-{os.getpid()}-{next(_NUMBERS)}"
    bridge = f"{stem}-bridge"
    addresses = [str(address) for address in itertools.islice(tools.free_network().hosts(), num)]
    made = [
        Host(f"{stem}-{number}", address, INTERFACE, rate, mtu_bytes, tools.ip)
        for number, (address, rate) in enumerate(zip(addresses, rates, strict=True))
    ]
    try:
        tools.make_bridge(bridge, mtu_bytes)
        for number, host in enumerate(made):
            tools.make_host(host, bridge, f"port{number}")
        yield made
    finally:
        tools.remove([bridge, *(host.name for host in made)])


def _checked_rates(
    num: int, rate_mbit: float | Sequence[float | None] | None, mtu_bytes: int
) -> list[float | None]:
    rates = list(rate_mbit) if isinstance(rate_mbit, Sequence) else [rate_mbit] * num
    if not 1 <= num <= MOST_HOSTS or len(rates) != num:
        raise HakaruError(
            f"{len(rates)} rates for {num} hosts: give a rate for each of 1 to {MOST_HOSTS}"
        )
    if mtu_bytes < LEAST_MTU_BYTES or mtu_bytes > LEAST_BURST_BYTES:
        raise HakaruError(
            f"an MTU of {mtu_bytes} bytes: expected {LEAST_MTU_BYTES} to {LEAST_BURST_BYTES}"
        )
    for rate in rates:
        if rate is not None and not (math.isfinite(rate) and rate > 0):
            raise HakaruError(
                f"a link of {rate} Mbit/s: a rate must be above 0, or None for no limit"
            )
    return rates


@dataclass(frozen=True)
class _Tools:
    """The programs `ip` and `tc`, and what we do with them."""

    ip: str
    tc: str

    @classmethod
    def find(cls) -> _Tools:
        missing = [name for name in ("ip", "tc") if _which(name) is None]
        if missing:
            raise Unavailable(
                f"{' and '.join(missing)} not found, which make network namespaces and shaped links. "
                "Install with: apt-get install iproute2"
            )
        if os.geteuid() != 0:
            raise Unavailable(
                "only root may make network namespaces. Run it as root: sudo hakaru …"
            )
        return cls(_which("ip") or "", _which("tc") or "")

    def make_bridge(self, bridge: str, mtu_bytes: int) -> None:
        self._make_namespace(bridge)
        _run(self.ip, "-n", bridge, "link", "add", "bridge", "type", "bridge")
        _run(self.ip, "-n", bridge, "link", "set", "bridge", "mtu", str(mtu_bytes), "up")

    def make_host(self, host: Host, bridge: str, port: str) -> None:
        """A namespace and both ends of its cable, made where they belong; each end shapes what it sends."""
        mtu = ("mtu", str(host.mtu_bytes))
        cable = ("type", "veth", "peer", "name", port, *mtu, "netns", bridge)
        self._make_namespace(host.name)
        _run(self.ip, "link", "add", host.interface, *mtu, "netns", host.name, *cable)
        _run(self.ip, "-n", bridge, "link", "set", port, "master", "bridge", "up")
        own = ("dev", host.interface)
        _run(self.ip, "-n", host.name, "address", "add", f"{host.address}/24", *own)
        _run(self.ip, "-n", host.name, "link", "set", *own, "up")
        if host.rate_mbit is not None:
            self._shape(host.name, host.interface, host.rate_mbit)
            self._shape(bridge, port, host.rate_mbit)

    def _make_namespace(self, name: str) -> None:
        _run(self.ip, "netns", "add", name)
        _run(self.ip, "-n", name, "link", "set", "lo", "up")

    def _shape(self, namespace: str, interface: str, rate_mbit: float) -> None:
        bytes_per_s = rate_mbit * 1e6 / 8
        burst = max(LEAST_BURST_BYTES, round(bytes_per_s * BURST_S))
        queue = max(LEAST_QUEUE_BYTES, round(bytes_per_s * QUEUE_S))
        sizes = ("burst", str(burst), "limit", str(queue))
        rate = ("rate", f"{round(rate_mbit * 1e6)}bit")
        _run(
            self.tc, "-n", namespace, "qdisc", "add", "dev", interface, "root", "tbf", *rate, *sizes
        )

    def names(self) -> list[str]:
        """The namespaces of this machine that have a name."""
        lines = _run(self.ip, "netns", "list").splitlines()
        return [line.split()[0] for line in lines if line.strip()]

    def remove(self, names: Sequence[str]) -> None:
        """Removing a namespace removes its end of each cable, and with it the other end."""
        there = set(self.names())
        failures = []
        for name in there.intersection(names):
            try:
                _run(self.ip, "netns", "delete", name)
            except Unavailable as error:
                failures.append(error)
        if failures:
            raise failures[0]

    def remove_leftovers(self) -> None:
        found = [(name, _NAME.fullmatch(name)) for name in self.names()]
        dead = [name for name, match in found if match and not is_running(int(match[1]))]
        with suppress(Unavailable):  # somebody else's use may remove them at the same time
            self.remove(dead)

    def free_network(self) -> IPv4Network:
        """Addresses that mean nothing else on this machine, so that a mistake reaches nobody."""
        words = _run(self.ip, "-4", "route", "show", "table", "all").split()
        used = [network for network in map(_network, words) if network]
        # the last is for measurements (RFC 2544) and serves where all of 10.0.0.0/8 is in use
        offers = [f"10.{number}.77.0/24" for number in range(201, 251)] + ["198.18.77.0/24"]
        networks = map(IPv4Network, offers)
        free = (network for network in networks if not any(map(network.overlaps, used)))
        return next(free, IPv4Network(offers[-1]))


def _network(word: str) -> IPv4Network | None:
    try:
        return IPv4Network(word, strict=False)
    except ValueError:
        return None


def _which(name: str) -> str | None:
    """Where a program is; users' paths often lack the folders of root's programs."""
    return shutil.which(name) or shutil.which(name, path=_TOOL_FOLDERS)


def _run(*command: str) -> str:
    text = shlex.join(command)
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=COMMAND_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"`{text}` did not run: {one_line(str(error))[:300]}") from error
    if done.returncode:
        why = one_line(done.stderr.strip())[:300] or f"exit code {done.returncode}"
        raise Unavailable(f"`{text}` failed: {why}")
    return done.stdout
