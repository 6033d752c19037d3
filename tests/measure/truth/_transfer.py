"""A TCP transfer between two hosts with plain sockets: `_transfer.py receive|send …` is run on each."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the processes on the hosts start without it
    from hakaru.measure.truth.links import Host

TIMEOUT_S = 20.0


def rates_mbit(sender: Host, receiver: Host, window_bytes: int, windows: int = 4) -> list[float]:
    """What the receiver reads in windows of so many bytes, after a first one that does not count."""
    script = [sys.executable, __file__]
    words = ["receive", receiver.address, str(window_bytes), str(windows)]
    with subprocess.Popen(
        [*receiver.prefix, *script, *words], stdout=subprocess.PIPE, text=True
    ) as listening:
        assert listening.stdout is not None
        port = listening.stdout.readline().strip()
        send = [*sender.prefix, *script, "send", receiver.address, port]
        with subprocess.Popen(send):
            read = [float(line) for line in listening.stdout]
    assert len(read) == windows
    return read


def receive(address: str, window_bytes: int, windows: int) -> None:
    with socket.create_server((address, 0)) as server:
        server.settimeout(TIMEOUT_S)
        print(server.getsockname()[1], flush=True)
        connection, _ = server.accept()
    with connection:
        connection.settimeout(TIMEOUT_S)
        window_s(connection, window_bytes)
        for _ in range(windows):
            print(window_bytes * 8 / 1e6 / window_s(connection, window_bytes), flush=True)


def window_s(connection: socket.socket, num_bytes: int) -> float:
    buffer = bytearray(1 << 18)
    began = time.perf_counter()
    while num_bytes > 0:
        got = connection.recv_into(buffer, min(num_bytes, len(buffer)))
        if not got:
            raise EOFError("the sender ended early")
        num_bytes -= got
    return time.perf_counter() - began


def send(address: str, port: int) -> None:
    """Sends until the receiver has enough and hangs up."""
    with socket.create_connection((address, port), TIMEOUT_S) as connection:
        try:
            while True:
                connection.sendall(bytes(1 << 18))
        except ConnectionError:
            return


if __name__ == "__main__":
    if sys.argv[1] == "receive":
        receive(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        send(sys.argv[2], int(sys.argv[3]))
