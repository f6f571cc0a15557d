#!/usr/bin/env python3
"""What an embedded server survives by itself: the death of its PostgreSQL, and readers that go away."""
import contextlib
import http.client
import os
import pathlib
import re
import signal
import socket
import subprocess
import unittest
import urllib.parse

import harness


def postmaster(server):
    """0 while there is none."""
    try:
        return int((server.dir / "d/postgres/data/postmaster.pid").read_text().split()[0])
    except (OSError, IndexError, ValueError):
        return 0


def end(pid, folder):
    """If it is still the process that worked in this folder."""
    with contextlib.suppress(OSError):
        if os.readlink(f"/proc/{pid}/cwd").startswith(str(folder)):
            os.kill(pid, signal.SIGKILL)


class Recovery(harness.Case):
    def commits(self, app_id):
        tree = self.server.clone()
        rows = self.server.git("log", "--format=%(trailers:key=Kubeopera-App,valueonly,separator=%x2C)", cwd=tree)
        return sum(app_id in r for r in rows.splitlines())

    def answer(self, *call):
        """0 while nothing is listening."""
        try:
            return self.server.call(*call).status
        except (OSError, http.client.HTTPException):
            return 0

    def test_a_postgresql_that_is_killed_comes_back_and_nothing_is_lost(self):
        s = self.server
        space = s.cloudspace("recovery")
        apps = []
        rounds = 5 if harness.LONG else 2
        for n in range(rounds):
            apps += [s.create(space["id"], f"web{n}{i}") for i in range(3)]
            before = postmaster(s)
            os.kill(before, signal.SIGKILL)
            seen = []
            s.until(lambda: postmaster(s), lambda pid: pid not in (0, before))
            s.until(lambda: seen.append(self.answer("GET", "/api/v1/apps/" + apps[-1]["id"])) or seen[-1], lambda code: code == 200, 60)
            self.assertLessEqual(set(seen), {200, 503}, seen)
            self.assertIsNone(s.process.poll())
        for app in apps:
            s.wait_phase(app["id"], "live")
            self.assertEqual(self.commits(app["id"]), 1)
        self.assertEqual(len(s.call("GET", "/api/v1/apps").json["items"]), len(apps))
        s.until(lambda: s.call("GET", "/readyz", token=None).status, lambda code: code == 200)
        harness.report("e2e_recovery", f"PostgreSQL killed {rounds} times, {len(apps)} apps delivered once each")

    def test_orphans_of_a_killed_postgresql_do_not_work_beside_the_new_one(self):
        s = self.server
        s.until(lambda: self.answer("GET", "/api/v1/apps"), lambda code: code == 200, 60)
        before = postmaster(s)
        children = [int(p.parent.name) for p in pathlib.Path("/proc").glob("[0-9]*/stat")
                    if re.search(rf"\) . {before} ", p.read_text(errors="replace"))]
        self.assertGreater(len(children), 2)
        for child in children:  # they do not notice that the postmaster has gone
            os.kill(child, signal.SIGSTOP)
            self.addCleanup(end, child, pathlib.Path(f"/proc/{child}/cwd").resolve())
        os.kill(before, signal.SIGKILL)
        s.until(lambda: postmaster(s), lambda pid: pid not in (0, before))
        s.until(lambda: self.answer("GET", "/api/v1/apps"), lambda code: code == 200, 60)
        left = [c for c in children if pathlib.Path(f"/proc/{c}/stat").exists()
                and pathlib.Path(f"/proc/{c}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"]
        self.assertEqual(left, [])


class Pipes(unittest.TestCase):
    def test_a_log_that_nobody_reads_and_clients_that_vanish_do_not_end_the_server(self):
        server = harness.Server()
        self.addCleanup(server.close)
        read_end, write_end = os.pipe()
        real = subprocess.Popen
        subprocess.Popen = lambda *a, **k: real(*a, **{**k, "stderr": write_end, "stdout": write_end})
        try:
            server.start()
        finally:
            subprocess.Popen = real
            os.close(write_end)
        os.close(read_end)  # from here on each line of the log is a write to a broken pipe
        space = server.cloudspace("pipes")
        app = server.create(space["id"], "web")
        server.wait_phase(app["id"], "live")
        url = urllib.parse.urlsplit(server.info["api_url"])
        head = f"GET /api/v1/apps/{app['id']}/logs?follow=true HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.info['token']}\r\n\r\n"
        for _ in range(20):
            with socket.create_connection((url.hostname, url.port), timeout=10) as c:
                c.sendall(head.encode())
                c.recv(10)
                c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # a reset, while it writes
        server.process.send_signal(signal.SIGPIPE)
        self.assertEqual(server.call("GET", "/api/v1/apps/" + app["id"]).status, 200)
        self.assertIsNone(server.process.poll())
        self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    harness.main()
