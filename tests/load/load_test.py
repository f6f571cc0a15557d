#!/usr/bin/env python3
"""Two hundred clients on one server, well-behaved and rude ones; a stop in the middle of it all.

./check runs it for some seconds, ./check --long for ten minutes. KUBEOPERA_LOAD_SECONDS says another length.
"""
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import harness  # noqa: E402

CLIENT = os.environ.get("KUBEOPERA_LOAD_CLIENT", "load_client")
CLIENTS = int(os.environ.get("KUBEOPERA_LOAD_CLIENTS") or (200 if harness.LONG else 100))
SECONDS = int(os.environ.get("KUBEOPERA_LOAD_SECONDS") or (600 if harness.LONG else 12))
KEPT = 20  # apps that live all through the run


class Vitals(threading.Thread):
    """Samples the server's memory and its descriptors, without those of Git packs: these grow with the commits that the server was
    fast enough to make, until they are compacted, and not with what clients hold."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.over, self.samples = pid, threading.Event(), []

    def sample(self):
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        rss = [int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS")]
        if not rss:
            raise ProcessLookupError(f"process {self.pid} has ended")
        return rss[0], sum(not self.is_pack(fd) for fd in os.listdir(f"/proc/{self.pid}/fd"))

    def is_pack(self, fd):
        try:
            return os.readlink(f"/proc/{self.pid}/fd/{fd}").endswith(".pack")
        except FileNotFoundError:
            return False  # closed since it was listed: it counts

    def run(self):
        while not self.over.wait(0.5):
            try:
                self.samples.append((time.monotonic(), *self.sample()))
            except OSError:
                return


class Rude(threading.Thread):
    """Peers that stall, that never read, that vanish. Each says how long the server put up with it."""

    def __init__(self, server, over):
        super().__init__(daemon=True)
        self.url = urllib.parse.urlsplit(server.info["api_url"])
        self.token, self.over = server.info["token"], over
        self.stalled, self.unread, self.vanished = [], [], 0

    def connect(self, window=0):
        s = socket.socket()
        if window:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        s.connect((self.url.hostname, self.url.port))
        return s

    def head(self, target):
        return f"GET {target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.token}\r\n\r\n".encode()

    def closed_after(self, s, limit):
        """Seconds until the server ends the connection; what it says meanwhile is taken in."""
        start = time.monotonic()
        s.settimeout(0.5)
        while time.monotonic() - start < limit and not self.over.is_set():
            try:
                if not s.recv(65536):
                    return time.monotonic() - start
            except TimeoutError:
                continue
            except OSError:
                return time.monotonic() - start
        return None

    def stall(self):
        with self.connect() as s:
            s.sendall(b"GET /api/v1/apps HTTP/1.1\r\nHost:")
            self.stalled.append(self.closed_after(s, 20))

    def never_read(self):
        """Asks for much and takes nothing: the server must give the connection up, not keep the answers."""
        with self.connect(window=4096) as s:
            s.settimeout(1)
            start = time.monotonic()
            one = self.head("/openapi.json")
            while time.monotonic() - start < 60 and not self.over.is_set():
                try:
                    s.sendall(one * 20)
                except TimeoutError:
                    continue
                except OSError:
                    self.unread.append(time.monotonic() - start)
                    return

    def vanish(self):
        while not self.over.wait(0.05):
            s = self.connect()
            s.sendall(self.head("/api/v1/apps?limit=50"))
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            s.close()
            self.vanished += 1

    def run(self):
        parts = [threading.Thread(target=f, daemon=True) for f in (self.stall, self.stall, self.never_read, self.never_read, self.vanish)]
        for p in parts:
            p.start()
        for p in parts:
            p.join()


class Load(unittest.TestCase):
    def setUp(self):
        self.server = harness.Server().start()
        self.space = self.server.cloudspace("load", quota={"cpu": "10000", "memory": "10Ti", "pods": 1000})
        self.kept = [self.server.create(self.space["id"], f"kept{i}")["id"] for i in range(KEPT)]
        for app in self.kept:
            self.server.wait_phase(app, "live", limit=120)

    def tearDown(self):
        self.server.close()

    def start_clients(self, seconds):
        plan = {"api_url": self.server.info["api_url"], "token": self.server.info["token"], "cloudspace": self.space["id"],
                "apps": self.kept, "clients": CLIENTS, "seconds": seconds}
        return subprocess.Popen([CLIENT, json.dumps(plan)], stdout=subprocess.PIPE, text=True)

    def check_answers(self, kinds):
        """No answer but the wanted ones, and those that state a limit."""
        wanted = {"create": {201}, "update": {200}, "delete": {202}}
        for kind, seen in kinds.items():
            self.assertEqual(seen.get("failures", {}), {}, kind)
            good = wanted.get(kind, {200}) | ({404} if kind == "deploy-status" else set())
            self.assertLessEqual({int(s) for s in seen.get("statuses", {})}, good, kind)

    def test_many_clients_at_once(self):
        over = threading.Event()
        vitals, rude = Vitals(self.server.process.pid), Rude(self.server, over)
        before = vitals.sample()
        vitals.start()
        rude.start()
        client = self.start_clients(SECONDS)
        out, _ = client.communicate(timeout=SECONDS + 120)
        over.set()
        rude.join(timeout=60)
        self.assertEqual(client.returncode, 0)
        kinds = json.loads(out)
        self.assertIsNone(self.server.process.poll(), "the server is gone")
        self.check_answers(kinds)
        total = sum(k["count"] for k in kinds.values())
        for name in ("list apps", "deploy-status", "create", "created until live", "watch status", "follow logs"):
            k = kinds.get(name, {"count": 0})
            self.assertGreater(k["count"], 0, name)
            harness.report("load", f"{name}: {k['count']}, p50 {k['p50_ms']:.1f} ms, p99 {k['p99_ms']:.1f} ms, most {k['max_ms']:.0f} ms")
        for waited in rude.stalled:
            if waited is not None:
                self.assertLess(waited, 15)
        if SECONDS >= 30:
            self.assertEqual(sum(w is not None for w in rude.stalled), 2, "a stalled client was not cut off")
            if SECONDS >= 60:
                self.assertEqual(len(rude.unread), 2, "a client that never reads was not cut off")
        self.assertGreater(rude.vanished, 0)
        # What the clients held is given back; pools keep some idle connections, both of whose ends are here.
        self.server.until(lambda: vitals.sample()[1], lambda fds: fds <= before[1] + 2 * 64, 30)
        vitals.over.set()
        peak = max(s[1] for s in vitals.samples)
        half = [s[1] for s in vitals.samples[len(vitals.samples) // 2:]]
        harness.report("load", f"{CLIENTS} clients, {SECONDS} s, {total} exchanges and pieces, {rude.vanished} vanished; memory {before[0]:.0f} MiB before, {peak:.0f} at most, {half[-1]:.0f} at the end")
        if SECONDS >= 300:
            self.assertLess(half[-1], half[0] * 1.25, "memory grows all through the second half")

    def test_a_stop_in_the_middle_loses_nothing(self):
        client = self.start_clients(SECONDS + 60)
        time.sleep(min(SECONDS / 4, 10))  # the middle of the run is what is tested
        start = time.monotonic()
        self.server.process.send_signal(signal.SIGTERM)
        code = self.server.process.wait(timeout=30)
        took = time.monotonic() - start
        client.terminate()
        client.communicate(timeout=60)
        self.assertEqual(code, 0, self.server.last_words())
        self.assertLess(took, 10)
        self.server.start()
        # Every row comes to its end: live, or gone. Every resource has its row.
        def settled():
            rows, cursor = [], ""
            while True:
                page = self.server.call("GET", f"/api/v1/apps?limit=100{cursor}").json
                rows += page["items"]
                if not page.get("next_cursor"):
                    break
                cursor = "&cursor=" + page["next_cursor"]
            return [(r["id"], self.server.status(r["id"]).get("phase")) for r in rows]
        rows = self.server.until(settled, lambda all: all and {p for _, p in all} == {"live"}, 120)
        items = self.server.kube("GET", "/apis/apps.kubeopera.io/v1alpha1/kubeoperaapps").json["items"]
        self.assertEqual(sorted(i["spec"]["app_id"] for i in items), sorted(i for i, _ in rows))
        tree = self.server.clone()
        self.server.git("fsck", "--strict", cwd=tree)
        harness.report("load", f"stopped under load in {took:.1f} s; {len(rows)} apps right after the restart")


if __name__ == "__main__":
    harness.main()
