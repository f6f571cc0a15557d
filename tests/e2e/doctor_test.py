#!/usr/bin/env python3
"""`kubeopera doctor`: a healthy deployment passes; each thing that is broken is named, with what to do."""
import base64
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import threading
import unittest

import harness
import yaml

FAILURES = []  # what was broken and named, for the report


def doctor(*arguments, **environment):
    clean = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "TMPDIR", "KUBEOPERA_LONG")}
    return subprocess.run([harness.BINARY, "doctor", *arguments], env={**clean, **environment}, capture_output=True, text=True, timeout=60)


def expired_pair():
    """A certificate that ended yesterday, and its key."""
    with tempfile.TemporaryDirectory() as d:
        run = lambda *a: subprocess.run(["openssl", *a], cwd=d, check=True, capture_output=True)
        run("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "k", "-out", "r", "-subj", "/CN=x")
        run("x509", "-req", "-in", "r", "-signkey", "k", "-days", "-1", "-out", "c")
        return pathlib.Path(d, "c").read_bytes(), pathlib.Path(d, "k").read_bytes()


class Doctor(unittest.TestCase):
    def setUp(self):
        self.server = harness.Server().start()
        self.data = str(self.server.dir / "d")

    def tearDown(self):
        self.server.close()

    @classmethod
    def tearDownClass(cls):
        harness.report("e2e_doctor", f"{len(FAILURES)} failures named with a remedy")

    def examine(self, *more, **environment):
        run = doctor("--json", *(more or ("--data-dir", self.data)), **environment)
        answer = json.loads(run.stdout)
        self.assertEqual(run.returncode, 0 if answer["ok"] else 1, run.stdout)
        self.assertEqual(answer["failed"], sum(c["state"] == "failed" for c in answer["checks"]))
        for c in answer["checks"]:
            self.assertEqual("do" in c, c["state"] != "ok", c)
        return answer["checks"]

    def named(self, checks, area, check, message, remedy):
        """Exactly this is failing there, and the remedy fits."""
        found = [c for c in checks if c["area"] == area and c["check"] == check]
        self.assertEqual([c["state"] for c in found], ["failed"], checks)
        self.assertRegex(found[0]["message"], message)
        self.assertRegex(found[0]["do"], remedy)
        FAILURES.append((area, check))

    def failed(self, checks):
        return sorted({c["area"] for c in checks if c["state"] == "failed"})

    def vcluster_secret(self, space, change):
        name = space["default_vcluster"]
        path = f"/api/v1/namespaces/vc-{name}/secrets/vc-{name}"
        config = change(self.server.kube("GET", path).json["data"]["config"])
        patch = {"data": {"config": config}}
        self.assertEqual(self.server.kube("PATCH", path, patch, "application/merge-patch+json").status, 200)
        return "vcluster " + name

    def test_a_healthy_server_passes(self):
        space = self.server.cloudspace("healthy")
        app = self.server.create(space["id"], "web")
        self.server.wait_phase(app["id"], "live")
        self.server.until(lambda: self.server.reload()["vclusters"].get(space["default_vcluster"]), bool)
        checks = self.examine()
        self.assertEqual(self.failed(checks), [])
        self.assertEqual({c["area"] for c in checks},
                         {"server", "secrets", "database", "host cluster", "vclusters", "fleet repository", "addresses", "machine"})
        table = doctor("--data-dir", self.data)
        self.assertEqual(table.returncode, 0)
        self.assertRegex(table.stdout, r"✓ database +reachable +PostgreSQL 1")
        self.assertIn("0 failed", table.stdout)
        key = pathlib.Path(self.data, "token.key").read_text()
        for secret in (key, self.server.info["token"], "PRIVATE KEY"):
            self.assertNotIn(secret, table.stdout + json.dumps(checks))

    def test_bad_usage(self):
        self.assertEqual(doctor("--nothing-like-it").returncode, 2)
        self.assertEqual(doctor("--data-dir", "/nowhere/at/all").returncode, 2)
        self.assertEqual(doctor("--help").returncode, 0)
        help_text = subprocess.run([harness.BINARY, "help"], capture_output=True, text=True)
        self.assertEqual(help_text.returncode, 0)
        self.assertIn("doctor ", help_text.stdout)

    def test_a_server_that_does_not_run(self):
        self.server.stop()
        checks = self.examine()
        self.named(checks, "server", "process", "no server runs", "start it: kubeopera embedded --data-dir")
        self.named(checks, "database", "reachable", "failed", "start the server, which starts its PostgreSQL")
        self.assertEqual(self.failed(checks), ["database", "server"])
        self.server.start()
        self.server.kill()  # its file stays behind
        self.named(self.examine(), "server", "process", "no server runs", "start it")

    def test_a_postgresql_that_is_stopped_is_named_in_bounded_time(self):
        pid = int(pathlib.Path(self.data, "postgres/data/postmaster.pid").read_text().split()[0])
        children = [int(p.parent.name) for p in pathlib.Path("/proc").glob("[0-9]*/stat")
                    if re.search(rf"\) . {pid} ", p.read_text(errors="replace"))]
        for p in [pid, *children]:
            os.kill(p, signal.SIGSTOP)
        try:
            checks = self.examine()
        finally:
            for p in [pid, *children]:
                os.kill(p, signal.SIGCONT)
        self.named(checks, "server", "ready", "not ready: database", "below")
        self.assertEqual(self.failed(checks), ["database", "server"])

    def test_a_vcluster_secret_of_garbage_and_one_that_has_expired(self):
        garbage, expired, gone = (self.server.cloudspace(n) for n in ("garbage", "expired", "gone"))
        first = self.vcluster_secret(garbage, lambda config: base64.b64encode(b"not: [a kubeconfig").decode())
        certificate, key = expired_pair()

        def expire(config):
            document = yaml.safe_load(base64.b64decode(config))
            user = document["users"][0]["user"]
            user["client-certificate-data"] = base64.b64encode(certificate).decode()
            user["client-key-data"] = base64.b64encode(key).decode()
            return base64.b64encode(yaml.safe_dump(document).encode()).decode()

        second = self.vcluster_secret(expired, expire)
        third = gone["default_vcluster"]
        self.server.kube("DELETE", f"/api/v1/namespaces/vc-{third}/secrets/vc-{third}")
        checks = self.examine()
        self.named(checks, first, "kubeconfig", "holds no kubeconfig", "delete secret vc-garbage")
        self.named(checks, second, "certificate", "expired at", "delete secret vc-expired")
        # The simulated vCluster writes a missing Secret again at once or not at all: either is told truly.
        self.assertIn(self.failed(checks), [[second, first], [second, first, "vcluster " + third]])
        self.assertNotIn(base64.b64encode(key).decode()[:40], json.dumps(checks))

    def test_a_token_key_that_is_too_short(self):
        pathlib.Path(self.data, "token.key").write_text("short")
        checks = self.examine()
        self.named(checks, "secrets", "token key", "shorter than 32 bytes", "delete .*token.key and start the server again")
        self.assertNotIn('"short"', json.dumps(checks))

    def test_a_fleet_repository_that_is_gone(self):
        pathlib.Path(self.data, "fleet.git").rename(pathlib.Path(self.data, "moved.git"))
        checks = self.examine()
        self.named(checks, "fleet repository", "reachable", "no bare repository", "git clone --bare")

    def test_what_the_environment_describes(self):
        s = self.server
        postgres = f"host='{self.data}/postgres/run' port=5432 user=kubeopera dbname=postgres password=db-password"
        right = {"DATABASE_URL": postgres, "AUTH_JWT_ACCESS_SECRET": "0123456789abcdefghijklmnopqrstuvwxyz-secret-key", "KUBECONFIG": s.info["kubeconfig"],
                 "FLUX_GIT_URL": s.info["fleet_url"], "KUBEOPERA_STORE_DIR": self.data}
        checks = self.examine("--json", **right)
        # The embedded server's Git is read-only from outside: that, and nothing else, is wrong with it.
        self.named(checks, "fleet repository", "push", "403", "FLUX_GIT_SECRET_REF")
        self.assertEqual(self.failed(checks), ["fleet repository"])
        self.assertIn("database", {c["area"] for c in checks})
        nothing = self.examine("--json")
        for name in ("DATABASE_URL", "AUTH_JWT_ACCESS_SECRET", "FLUX_GIT_URL"):
            self.named(nothing, "settings", name, "required", "set " + name)
        self.named(nothing, "host cluster", "credentials", "KUBECONFIG", "KUBECONFIG")
        wrong = {**right, "AUTH_JWT_ACCESS_SECRET": "too-short-key", "DATABASE_URL": "postgres://u:changeme@127.0.0.1:1/x",
                 "RABBITMQ_URL": "amqp://u:broker-password@127.0.0.1:1/", "FLUX_GIT_URL": "http://127.0.0.1:1/fleet.git",
                 "APPS_BASE_DOMAIN": "apps.nowhere.invalid", "LOG_LEVEL": "loud"}
        checks = self.examine("--json", **wrong)
        self.named(checks, "secrets", "token key", "shorter than 32 bytes", "openssl rand")
        self.named(checks, "database", "reachable", "Connection refused", "pg_isready")
        self.named(checks, "broker", "reachable", "127.0.0.1:1", "RABBITMQ_URL")
        self.named(checks, "fleet repository", "reachable", "127.0.0.1", "FLUX_GIT_URL")
        self.named(checks, "addresses", "*.apps.nowhere.invalid", "resolved", "wildcard DNS record")
        self.named(checks, "settings", "LOG_LEVEL", "must be", "LOG_LEVEL")
        self.assertIn("warning", [c["state"] for c in checks if c["check"] == "database password"])
        for secret in ("changeme", "broker-password", "too-short-key", "db-password", right["AUTH_JWT_ACCESS_SECRET"]):
            self.assertNotIn(secret, json.dumps(checks))

    def test_a_broker_that_answers_and_one_that_is_something_else(self):
        for greeting, state in ((b"\1\0\0\0\0\0\4abcd\xce", "ok"), (b"HTTP/1.1 400 Bad Request\r\n\r\n", "failed"), (b"AMQP\0\1\0\0", "failed")):
            with socket.create_server(("127.0.0.1", 0)) as door:
                def answer():
                    with door.accept()[0] as c:
                        self.assertEqual(c.recv(8), b"AMQP\0\0\x09\1")
                        c.sendall(greeting)
                waiter = threading.Thread(target=answer)
                waiter.start()
                checks = self.examine("--json", RABBITMQ_URL=f"amqp://u:p@127.0.0.1:{door.getsockname()[1]}/")
                waiter.join()
            self.assertEqual([c["state"] for c in checks if c["area"] == "broker"], [state], greeting)

    def test_an_account_that_may_too_little(self):
        s = self.server
        accounts = "/api/v1/namespaces/kubeopera-system/serviceaccounts"
        self.assertEqual(s.kube("POST", accounts, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "poor"}}).status, 201)
        asked = s.kube("POST", accounts + "/poor/token", {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
        self.assertEqual(asked.status, 201, asked)
        config = yaml.safe_load(pathlib.Path(s.info["kubeconfig"]).read_text())
        config["users"][0]["user"] = {"token": asked.json["status"]["token"]}
        path = s.dir / "poor.yaml"
        path.write_text(yaml.safe_dump(config))
        checks = self.examine("--json", KUBECONFIG=str(path))
        self.named(checks, "host cluster", "permissions", "not allowed: .*get secrets", "Role in namespace kubeopera-system")
        self.assertNotIn(asked.json["status"]["token"], json.dumps(checks))

    def test_a_schema_that_is_behind(self):
        run = subprocess.run(["psql", "-h", f"{self.data}/postgres/run", "-U", "kubeopera", "-d", "postgres", "-c",
                              "delete from kubeopera.schema_migrations where number = 100"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.named(self.examine(), "database", "schema", "1 of [0-9]+ migrations", "start the server again")

    def test_resources_that_are_missing(self):
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/kubeoperaapps.apps.kubeopera.io"
        self.assertEqual(self.server.kube("DELETE", path).status, 200)
        self.server.until(lambda: self.server.kube("GET", path).status, lambda code: code == 404)
        checks = self.examine()
        self.named([c for c in checks if c["state"] == "failed"], "host cluster", "resources", "kubeoperaapps", "installs them")


if __name__ == "__main__":
    harness.main()
