"""Half-open connections to the annotation page beyond its limit of open files, from five addresses.

    python bench/half_open.py [--connections 1100] [--files 1024] [--seconds 20]

Each connection begins a request and then sends a header each second, but never a whole one. Meanwhile others, also
from the same addresses, ask for the page: every one must be answered. It prints how long they waited, the memory of
the server and the size of its log; the program ends with status 1 where a request was not answered.
"""

from __future__ import annotations

import argparse
import contextlib
import resource
import socket
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))

from mining_workspace import write_workspace
from verify_soak import read_memory

ADDRESSES = tuple(f"127.0.0.{number}" for number in range(2, 7))


def connect(port: int, source: str) -> socket.socket:
    """A connection of one of the addresses."""
    return socket.create_connection(("127.0.0.1", port), timeout=30, source_address=(source, 0))


def ask(port: int, source: str) -> float:
    """Seconds until a whole request is answered; NaN where it is not."""
    began = time.monotonic()
    try:
        with connect(port, source) as line:
            line.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
            return time.monotonic() - began if line.recv(4096).startswith(b"HTTP/1.1 401") else float("nan")
    except OSError:
        return float("nan")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=1100)
    parser.add_argument("--files", type=int, default=1024)
    parser.add_argument("--seconds", type=int, default=20)
    asked = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 2 * asked.connections + 100), most))
    with tempfile.TemporaryDirectory() as temporary, (Path(temporary) / "log").open("w+") as log:
        workspace = write_workspace(Path(temporary) / "workspace", 2).folder
        command = [sys.executable, "-u", "-m", "counterfoil", "verify", "serve", str(workspace), "--port", "0"]
        limit = partial(resource.setrlimit, resource.RLIMIT_NOFILE, (asked.files, asked.files))
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, preexec_fn=limit) as server:
            assert server.stdout is not None
            port = next(int(line.rsplit(":", 1)[1]) for line in server.stdout if line.startswith("listening on"))
            before = read_memory(server.pid)
            lines = [connect(port, ADDRESSES[number % len(ADDRESSES)]) for number in range(asked.connections)]
            waits, memory = [], []
            for second in range(asked.seconds):
                for line in lines:
                    with contextlib.suppress(OSError):  # the server closed it
                        line.sendall(f"X-{second}: 1\r\n".encode() if second else b"GET / HTTP/1.1\r\n")
                waits += [ask(port, source) for source in (*ADDRESSES, "127.0.0.9")]
                memory.append(read_memory(server.pid))
                time.sleep(1)
            server.terminate()
        size = (Path(temporary) / "log").stat().st_size
    lost = sum(wait != wait for wait in waits)
    print(
        f"{asked.connections:,} half-open connections, {asked.files:,} files: {len(waits) - lost} of {len(waits)}"
        f" requests answered, the slowest after {max(wait for wait in waits if wait == wait):.2f} s; memory"
        f" {before:.0f} MB before, at most {max(memory):.0f} MB; log {size:,} bytes"
    )
    raise SystemExit(1 if lost else 0)


if __name__ == "__main__":
    main()
