#!/usr/bin/env python3
"""Two servers, each API and controllers, on one database, one fleet repository and one set of clusters, changed through both at
once while one of them dies in the middle: one resource an app, one commit a revision, nothing done twice.

A third process has the clusters, PostgreSQL and Git; the two reach them as over a network, and elect the controllers' leader."""
import json
import os
import random
import signal
import subprocess
import threading
import time
import unittest

import harness
import walk

SEED = int(os.environ.get("KUBEOPERA_WALK_SEED") or random.SystemRandom().randrange(1 << 30))
CLIENTS = 4


class Surroundings(walk.Walker):
    """The process that is no server. What asks the API through it asks one of the two."""

    def __init__(self):
        super().__init__()
        self.environment = {"KUBEOPERA_WALK_ROLES": "app"}
        self.server = None

    def reload(self):
        info = json.loads((self.dir / "d/embedded.json").read_text())
        if self.server:
            info["api_url"] = self.server.info["api_url"]
        self.info = info
        return info

    def activity(self):
        return sum(p.stat().st_size for p in self.dir.glob("effects*"))


class One(harness.Server):
    """One of the two servers."""

    def __init__(self, around, name):
        self.around, self.dir, self.name, self.process = around, around.dir, name, None
        self.effects = self.dir / f"effects.{name}"

    def start(self, plan=""):
        place = self.dir / "d" / f"{self.name}.json"
        place.unlink(missing_ok=True)
        environment = {**os.environ, "KUBEOPERA_WALK": plan, "KUBEOPERA_WALK_LOG": str(self.effects)}
        self.log = open(self.dir / "server.log", "ab")
        self.process = subprocess.Popen([harness.BINARY, "join", "--data-dir", str(self.dir / "d"), "--name", self.name],
                                        stdout=self.log, stderr=self.log, env=environment)
        self.until(lambda: place.exists() or self.process.poll() is not None, bool)
        if self.process.poll() is None:
            self.info = {**self.around.info, **json.loads(place.read_text())}
        return self

    def close(self):
        if self.process and self.process.poll() is None:
            self.kill()


class Client:
    """Asks one server, and the other where that one does not answer well."""

    def __init__(self, servers):
        self.servers = list(servers)

    def ask_api(self, method, path, body=None, key="", limit=60):
        deadline = time.monotonic() + limit
        for i in range(1 << 30):
            server = self.servers[i % len(self.servers)]
            why = "no answer"
            try:
                r = server.call(method, path, body, headers={"Idempotency-Key": key} if key else None)
                busy = r.status == 409 and r.json["reason"] == "RequestInProgress"
                if r.status < 500 and r.status != 429 and not busy:
                    return r
                why = r
            except (OSError, harness.http.client.HTTPException) as e:
                why = e
            if time.monotonic() > deadline:
                raise AssertionError(f"{method} {path} does not end well: {why}")
            time.sleep(0.05)

    def other(self):
        self.servers.reverse()
        return self


def life(servers, model, number, failures):
    """One client's script, each step through the other server."""
    try:
        c = Client(servers if number % 2 else servers[::-1])
        app = walk.create(c, model, f"web{number}")
        walk.put_config(c.other(), model, app, image="ghcr.io/acme/web:2.0")
        walk.put_config(c.other(), model, app, replicas=2)
        walk.move(c.other(), model, app, f"shop{number}.acme.example")
        if number % 2:
            walk.delete(c.other(), model, app)
    except Exception as e:  # told in the test's own thread
        failures.append(e)


class Pair(unittest.TestCase):
    def setUp(self):
        self.around = Surroundings()
        self.around.start()
        self.a, self.b = One(self.around, "a"), One(self.around, "b")
        self.deaths = []

    def tearDown(self):
        for server in (self.a, self.b):
            server.close()
        self.around.close()

    def leader(self):
        lease = self.around.kube("GET", "/apis/coordination.k8s.io/v1/namespaces/kubeopera-system/leases/kubeopera-app-controller")
        return lease.json.get("spec", {}).get("holderIdentity", "") if lease.status == 200 else ""

    def watch_over(self, stop):
        """Starts again what dies, as a supervisor does."""
        while not stop.wait(0.02):
            for server in (self.a, self.b):
                code = server.process.poll()
                if code is not None:
                    self.deaths.append((server.name, code))
                    server.start()

    def walk_through(self, plan="", killed="", meanwhile=None):
        """All clients at once while the server `killed` follows its plan and meanwhile() runs. Returns the deaths."""
        a, b, w = self.a, self.b, self.around
        a.start(plan if killed == "a" else "")
        w.until(self.leader, bool)  # a leads
        b.start(plan if killed == "b" else "")
        stop, failures = threading.Event(), []
        keeper = threading.Thread(target=self.watch_over, args=(stop,))
        keeper.start()
        model = walk.Model()
        try:
            walk.add_space(Client([a, b]), model)
            clients = [threading.Thread(target=life, args=([a, b], model, n, failures)) for n in range(CLIENTS)]
            for c in clients:
                c.start()
            if meanwhile:
                meanwhile()
            for c in clients:
                c.join()
            if failures:
                raise failures[0]
            model.commits_may_lack = True  # revisions follow each other at once
            w.server = b
            w.reload()
            walk.settle(w, model, limit=90)
        finally:
            stop.set()
            keeper.join()
        return self.deaths

    def test_nobody_dies(self):
        self.assertEqual(self.walk_through(), [])

    def test_the_leader_dies(self):
        k = random.Random(SEED).randrange(12, 60)
        deaths = self.walk_through(f"any:{k}:kill", "a")
        self.assertEqual(deaths, [("a", -signal.SIGKILL)])
        harness.report("two servers", f"{CLIENTS} clients through both; the leader killed after its effect {k} (seed {SEED})")

    def test_the_other_dies(self):
        k = random.Random(SEED).randrange(4, 20)
        deaths = self.walk_through(f"any:{k}:kill", "b")
        self.assertEqual(deaths, [("b", -signal.SIGKILL)])
        harness.report("two servers", f"{CLIENTS} clients through both; the one that does not lead killed after its effect {k} (seed {SEED})")

    @unittest.skipUnless(harness.LONG, "./check --long")
    def test_a_frozen_leader_wakes_up(self):
        """Its Lease has run out and the other leads; it must do nothing more, and end."""

        def freeze():
            self.a.process.send_signal(signal.SIGSTOP)
            time.sleep(25)  # longer than the Lease lasts
            self.a.process.send_signal(signal.SIGCONT)
            self.around.until(lambda: self.deaths, bool)

        deaths = self.walk_through(meanwhile=freeze)
        self.assertEqual(deaths, [("a", 1)])
        harness.report("two servers", f"{CLIENTS} clients through both; the leader stood still for 25 s")


if __name__ == "__main__":
    harness.main()
