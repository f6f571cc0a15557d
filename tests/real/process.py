"""Programs started for a test: each with a log of its own, and none outlives the test."""
import concurrent.futures
import contextlib
import ctypes
import os
import pathlib
import signal
import socket
import subprocess
import time

# The kernel ends a child when the *thread* that made it ends: one thread that lasts makes them all.
_maker = concurrent.futures.ThreadPoolExecutor(1, "spawn")
_libc = ctypes.CDLL(None)


def _tied():
    _libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def free_ports(count):
    """Ports of loopback that nobody listens on now."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return ports


def wait_until(what, read, limit=30.0, pause=0.02):
    """The first true value of read(); an exception of it counts as false until time is up."""
    deadline, last = time.monotonic() + limit, None
    while True:
        try:
            value = read()
            if value:
                return value
            last = value
        except Exception as e:  # noqa: BLE001  (told when time is up)
            last = e
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {limit} s; last: {last!r}")
        time.sleep(pause)


class Process:
    """One program. start() again after an end starts it anew with the same arguments."""

    def __init__(self, name, arguments, folder, environment=None):
        self.name, self.arguments, self.environment = name, [str(a) for a in arguments], environment or {}
        self.log = pathlib.Path(folder) / f"{name}.log"
        self.child = None

    def start(self):
        out = open(self.log, "ab")
        self.child = _maker.submit(subprocess.Popen, self.arguments, stdout=out, stderr=out, stdin=subprocess.DEVNULL,
                                   env={**os.environ, **self.environment}, preexec_fn=_tied).result()
        out.close()
        return self

    @property
    def running(self):
        return self.child is not None and self.child.poll() is None

    def check(self):
        if not self.running:
            raise RuntimeError(f"{self.name} ended with {self.child.returncode if self.child else None}: {self.tail()}")

    def tail(self, size=2000):
        with contextlib.suppress(OSError):
            return self.log.read_text(errors="replace")[-size:]
        return ""

    def signal(self, number):
        if self.running:
            self.child.send_signal(number)

    def freeze(self):
        self.signal(signal.SIGSTOP)

    def thaw(self):
        self.signal(signal.SIGCONT)

    def kill(self):
        self.signal(signal.SIGKILL)
        if self.child:
            self.child.wait()

    def stop(self, limit=15):
        """Asks it to end, and ends it when it does not; the exit status."""
        if not self.child:
            return None
        self.thaw()
        self.signal(signal.SIGTERM)
        try:
            return self.child.wait(limit)
        except subprocess.TimeoutExpired:
            self.kill()
            return -signal.SIGKILL
