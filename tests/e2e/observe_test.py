#!/usr/bin/env python3
"""What the server tells of itself: metrics, traces, logs, readiness."""
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import unittest
import urllib.parse

import exposition
import harness

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"


def traced(trace, request_id):
    return {"traceparent": PARENT.replace(TRACE, trace), "X-Request-Id": request_id}


def log_lines(server):
    return [json.loads(line) for line in (server.dir / "server.log").read_text().splitlines()]


def fetch(url, path):
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
    try:
        connection.request("GET", path)
        r = connection.getresponse()
        return harness.Reply(r.status, r.headers, r.read())
    finally:
        connection.close()


class Metrics(harness.Case):
    # What has to be there after an app was delivered, beside the process's own.
    EXPECTED = """kubeopera_build_info kubeopera_http_requests_total kubeopera_http_request_duration_seconds
        kubeopera_http_requests_in_flight kubeopera_http_streams_open kubeopera_http_connections kubeopera_outbox_depth
        kubeopera_outbox_oldest_age_seconds kubeopera_outbox_delivered_total kubeopera_outbox_in_work kubeopera_workqueue_depth
        kubeopera_workqueue_adds_total kubeopera_workqueue_queue_duration_seconds kubeopera_workqueue_work_duration_seconds
        kubeopera_reconcile_total kubeopera_reconcile_seconds kubeopera_reconcile_active kubeopera_git_batches_total
        kubeopera_git_pushes_total kubeopera_git_changes_total kubeopera_git_batch_seconds kubeopera_git_waiting_changes
        kubeopera_informer_objects kubeopera_informer_lists_total kubeopera_informer_events_total kubeopera_informer_errors_total
        kubeopera_informer_quiet_seconds kubeopera_vcluster_watches kubeopera_resolver_hits_total kubeopera_resolver_misses_total
        kubeopera_resolver_failures_total kubeopera_resolver_entries kubeopera_postgres_connections kubeopera_postgres_waiting
        kubeopera_postgres_acquire_seconds kubeopera_postgres_exchange_seconds kubeopera_postgres_connects_total
        kubeopera_dependency_up process_cpu_seconds_total process_resident_memory_bytes process_open_fds process_max_fds
        process_start_time_seconds""".split()

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        s = cls.server
        app = s.create(s.cloudspace("metrics")["id"], "counted")
        s.wait_phase(app["id"], "live")
        s.call("GET", "/api/v1/apps/not-an-id/secret-path")
        s.call("GET", "/readyz", token=None)
        cls.app = app
        cls.texts = {face: fetch(s.info[face], "/metrics") for face in ("api_url", "app_service_url")}

    def test_the_format_and_the_names_are_right(self):
        samples = 0
        for face, reply in self.texts.items():
            self.assertEqual(reply.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
            self.assertEqual(exposition.judge(reply.text), [], face)
            samples += len(reply.text.splitlines())
        harness.report("e2e_observe", f"{samples} lines of metrics judged")

    def test_promtool_agrees(self):
        promtool = shutil.which("promtool")
        if not promtool:
            self.skipTest("promtool (Debian package prometheus) is not installed; the checker of exposition.py ran")
        for reply in self.texts.values():
            r = subprocess.run([promtool, "check", "metrics"], input=reply.text, text=True, capture_output=True)
            self.assertEqual((r.returncode, r.stdout + r.stderr), (0, ""))

    def test_everything_is_covered(self):
        families, _ = exposition.read(self.texts["api_url"].text)
        self.assertEqual([n for n in self.EXPECTED if n not in families], [])

    def test_what_was_done_is_counted(self):
        families, _ = exposition.read(self.texts["api_url"].text)

        def value(name, **labels):
            return sum(n for _, l, n in families[name].samples if labels.items() <= l.items())

        self.assertEqual(value("kubeopera_http_requests_total", route="/api/v1/apps", method="POST", status="2xx"), 1)
        self.assertGreaterEqual(value("kubeopera_http_requests_total", route="unmatched", status="4xx"), 1)
        self.assertEqual(value("kubeopera_outbox_delivered_total", topic="app"), 1)
        self.assertEqual(value("kubeopera_git_batches_total", result="committed"), 1)
        self.assertEqual(value("kubeopera_git_pushes_total", result="accepted"), 1)
        self.assertEqual(value("kubeopera_informer_objects", cluster="host", resource="kubeoperaapps"), 1)
        self.assertEqual(value("kubeopera_vcluster_watches"), 1)
        self.assertEqual(value("kubeopera_dependency_up", service="kubeopera-api", dependency="database"), 1)
        self.assertGreater(value("kubeopera_resolver_hits_total"), 0)
        self.assertGreater(value("process_resident_memory_bytes"), 1 << 20)

    def test_no_id_and_no_raw_path_is_a_label(self):
        text = self.texts["api_url"].text
        for secret in (self.app["id"], "not-an-id", "secret-path", self.app["tenant_cr_name"]):
            self.assertNotIn(secret, text)

    def test_the_checker_can_fail(self):
        bad = "# HELP a_ms x\n# TYPE a_ms gauge\na_ms 1\na_ms 1\n# TYPE b counter\nb{x=\"1} 2\n"
        faults = exposition.judge(bad)
        for part in ("base unit", "twice", "labels cannot be read", "no help", "_total"):
            self.assertTrue(any(part in f for f in faults), (part, faults))


class Traces(harness.Case):
    def trailers(self, key, app_id):
        """Of the app's commits, newest first."""
        tree = self.server.clone()
        pick = "%(trailers:key={},valueonly,separator=%x2C)"
        out = self.server.git("log", "--format=" + pick.format("Kubeopera-App") + " " + pick.format(key), cwd=tree)
        rows = [line.split(" ", 1) for line in out.splitlines()]
        return [value for app, value in rows if app == app_id]

    def resource(self, app_id):
        items = self.server.kube("GET", "/apis/apps.kubeopera.io/v1alpha1/kubeoperaapps").json["items"]
        return next((i for i in items if i["spec"]["app_id"] == app_id), None)

    def test_one_id_finds_a_change_in_the_answer_the_cluster_git_and_the_log(self):
        s = self.server
        space = s.cloudspace("traces")
        made = s.call("POST", "/api/v1/apps", {"name": "web", "image": "ghcr.io/acme/web:1", "port": 80, "cloudspace_id": space["id"]},
                      headers=traced(TRACE, "make-1"))
        self.assertEqual(made.status, 201)
        answered = made.headers["traceparent"]
        self.assertRegex(answered, f"^00-{TRACE}-[0-9a-f]{{16}}-01$")
        self.assertNotEqual(answered, PARENT)
        app = made.json
        s.wait_phase(app["id"], "live")
        notes = self.resource(app["id"])["metadata"]["annotations"]
        self.assertEqual(notes["kubeopera.io/traceparent"], answered)
        self.assertEqual(notes["kubeopera.io/request-id"], "make-1")
        self.assertEqual(notes["kubeopera.io/actor"], "developer@example.com")
        self.assertEqual(self.trailers("Traceparent", app["id"]), [answered])
        # An update is another trace.
        second = "1" * 32
        spec = s.call("GET", f"/api/v1/apps/{app['id']}/config").json
        changed = s.call("PUT", f"/api/v1/apps/{app['id']}/config", {**spec, "image": "ghcr.io/acme/web:2"}, headers=traced(second, "change-1"))
        s.wait_phase(app["id"], "live", 2)
        self.assertEqual(self.resource(app["id"])["metadata"]["annotations"]["kubeopera.io/traceparent"], changed.headers["traceparent"])
        self.assertEqual(self.trailers("Traceparent", app["id"])[0], changed.headers["traceparent"])
        # And so is the deletion, by someone else: the commit names who asked for it.
        third = "2" * 32
        token = s.sign(sub="cleaner@example.com", tenant_id="demo")
        gone = s.call("DELETE", f"/api/v1/apps/{app['id']}", token=token, headers=traced(third, "delete-1"))
        self.assertEqual(gone.status, 202)
        s.until(lambda: s.call("GET", f"/api/v1/apps/{app['id']}").status, lambda code: code == 404)
        self.assertEqual(self.trailers("Traceparent", app["id"])[0], gone.headers["traceparent"])
        self.assertEqual(self.trailers("Kubeopera-Actor", app["id"]), ["cleaner@example.com", "developer@example.com", "developer@example.com"])
        self.assertEqual(self.trailers("Kubeopera-Request-Id", app["id"]), ["delete-1", "change-1", "make-1"])
        for trace, step in ((TRACE, "app committed"), (TRACE, "app delivered"), (second, "app committed"), (third, "app removed from the fleet repository")):
            found = [l for l in log_lines(s) if l.get("trace_id") == trace]
            self.assertIn("request", [l["msg"] for l in found], trace)
            self.assertIn(step, [l["msg"] for l in found], trace)

    def test_the_vcluster_says_who_asked_for_it(self):
        made = self.server.call("POST", "/api/v1/cloudspaces", {"name": "asked"}, headers=traced("3" * 32, "space-1"))
        name = "/apis/tenancy.kubeopera.io/v1alpha1/namespaces/kubeopera-system/kubeoperatenants"
        items = self.server.until(lambda: self.server.kube("GET", name).json["items"],
                                  lambda all: any(i["spec"]["cloudspace"] == "asked" for i in all))
        notes = next(i for i in items if i["spec"]["cloudspace"] == "asked")["metadata"]["annotations"]
        self.assertEqual(notes["kubeopera.io/traceparent"], made.headers["traceparent"])
        self.assertEqual(notes["kubeopera.io/request-id"], "space-1")

    def test_a_forged_annotation_does_not_reach_git(self):
        s = self.server
        app = s.create(s.cloudspace("forged")["id"], "forged")
        s.wait_phase(app["id"], "live")
        path = "/apis/apps.kubeopera.io/v1alpha1/namespaces/kubeopera-system/kubeoperaapps/" + self.resource(app["id"])["metadata"]["name"]
        notes = {"kubeopera.io/traceparent": "00-evil", "kubeopera.io/actor": "a\nKubeopera-App: forged"}
        patch = {"metadata": {"annotations": notes}, "spec": {"revision": 2, "app": {"image": "ghcr.io/acme/web:9"}}}
        self.assertEqual(s.kube("PATCH", path, patch, "application/merge-patch+json").status, 200)
        s.until(lambda: self.trailers("Kubeopera-Revision", app["id"]), lambda all: all[0] == "2")
        self.assertEqual(self.trailers("Traceparent", app["id"])[0], "")
        self.assertEqual(self.trailers("Kubeopera-Actor", app["id"]), ["developer@example.com"] * 2)

    def test_what_is_no_traceparent_is_ignored(self):
        for bad in ("nonsense", PARENT.upper(), PARENT.replace("00-", "ff-", 1), f"00-{'0' * 32}-b7ad6b7169203331-01", PARENT + "-more"):
            r = self.server.call("GET", "/api/v1/apps", headers={"traceparent": bad})
            self.assertEqual(r.status, 200)
            self.assertRegex(r.headers["traceparent"], "^00-[0-9a-f]{32}-[0-9a-f]{16}-01$")
            self.assertNotIn(TRACE, r.headers["traceparent"])


class Logs(harness.Case):
    def test_every_line_is_an_object_with_the_ids_and_no_secret(self):
        s = self.server
        token = s.sign(sub="someone@example.com", tenant_id="demo")
        space = s.cloudspace("logs", token)
        made = s.call("POST", "/api/v1/apps", {"name": "quiet", "image": "ghcr.io/acme/web:1", "port": 80, "cloudspace_id": space["id"],
                                               "env": [{"name": "PASSWORD", "secret": "s3cret-env-value"},
                                                       {"name": "PLAIN", "value": "plain-env-value"}]},
                      token, {"X-Request-Id": "quiet-1", "Cookie": "session=cookie-value"})
        self.assertEqual(made.status, 201, made)
        s.wait_phase(made.json["id"], "live")
        s.call("GET", "/api/v1/apps?api_key=query-secret", token=token)
        s.call("GET", "/api/v1/apps", token="not.a.token-value")
        s.call("POST", "/api/v1/apps", token=token, raw='{"name": "body-secret', headers={"Content-Type": "application/json"})
        s.kube("GET", "/api/v1/secrets")
        text = (s.dir / "server.log").read_text()
        lines = [json.loads(line) for line in text.splitlines()]
        for l in lines:
            self.assertTrue({"time", "level", "msg"} <= l.keys(), l)
        key = (s.dir / "d/token.key").read_text()
        for secret in (token, token.split(".")[2], key, s.info["token"], s.info["admin_token"], "s3cret-env-value", "plain-env-value",
                       "czNjcmV0LWVudi12YWx1ZQ", "cookie-value", "query-secret", "token-value", "body-secret", "PRIVATE KEY", "Bearer "):
            self.assertNotIn(secret, text)
        line = next(l for l in lines if l.get("request_id") == "quiet-1" and l["msg"] == "request")
        self.assertEqual((line["route"], line["method"], line["status"], line["tenant_id"], line["actor"], line["app_id"], line["app"],
                          line["revision"], line["cluster"]),
                         ("/api/v1/apps", "POST", 201, "demo", "someone@example.com", made.json["id"], "quiet", "1", made.json["tenant_cr_name"]))
        self.assertIsInstance(line["duration_ms"], float)
        commit = next(l for l in lines if l["msg"] == "app committed" and l["request_id"] == "quiet-1")
        self.assertRegex(commit["commit"], "^[0-9a-f]{40}$")
        self.assertEqual((commit["app_id"], commit["trace_id"]), (made.json["id"], line["trace_id"]))
        refused = [l for l in lines if l.get("status") == 401]
        self.assertEqual(refused[0]["reason"], "TokenMalformed")
        harness.report("e2e_observe", f"{len(lines)} log lines read, 14 secrets searched for")


class Passwords(unittest.TestCase):
    def test_a_database_password_is_never_printed(self):
        for url in ("postgres://u:topsecret@127.0.0.1:1/x", "postgres://u:topsecret@[bad/x", "postgres://u:topsecret%ZZ@h/x",
                    "postgres://u:topsecret@h:99999/x", "postgres://u:topsecret@h/x?nope=1", "host=h password=topsecret nope=1",
                    "host=h password='topsecret", "postgres://u:topsecret%00@h/x"):
            run = subprocess.run([harness.BINARY, "migrate"], env={**os.environ, "DATABASE_URL": url}, capture_output=True, text=True, timeout=60)
            self.assertNotEqual(run.returncode, 0, url)
            self.assertIn("database", run.stderr)
            self.assertNotIn("topsecret", run.stdout + run.stderr)


class Readiness(unittest.TestCase):
    def setUp(self):
        self.server = harness.Server().start()

    def tearDown(self):
        self.server.close()

    def ready(self, path="/readyz"):
        return self.server.call("GET", path, token=None)

    def checks(self):
        return {c["name"]: c for c in self.ready().json["checks"]}

    def test_the_sick_dependency_is_named(self):
        s = self.server
        self.assertEqual(self.ready().status, 200)
        self.assertEqual({n: c["state"] for n, c in self.checks().items()}, {"database": "ok", "host cluster": "ok", "git remote": "ok"})
        fleet = s.dir / "d/fleet.git"
        fleet.rename(s.dir / "d/elsewhere.git")
        sick = s.until(self.ready, lambda r: r.status == 503)
        self.assertEqual({c["name"]: c["ok"] for c in sick.json["checks"]}, {"database": True, "host cluster": True, "git remote": False})
        self.assertIn("repository", next(c for c in sick.json["checks"] if not c["ok"])["message"])
        for path in ("/healthz", "/livez"):
            self.assertEqual(self.ready(path).status, 200)
        (s.dir / "d/elsewhere.git").rename(fleet)
        s.until(self.ready, lambda r: r.status == 200)
        words = [l["msg"] for l in log_lines(s) if l.get("dependency") == "git remote"]
        self.assertEqual(words, ["dependency is sick", "dependency is well again"] * (len(words) // 2))

    def test_a_database_that_hangs_does_not_hang_readyz(self):
        s = self.server
        pid = int((s.dir / "d/postgres/data/postmaster.pid").read_text().split()[0])
        family = [pid] + [int(p.parent.name) for p in pathlib.Path("/proc").glob("[0-9]*/stat")
                          if re.search(rf"\) . {pid} ", p.read_text(errors="replace"))]
        for p in family:
            os.kill(p, signal.SIGSTOP)
        try:
            sick = s.until(self.ready, lambda r: r.status == 503, 10)
            names = {c["name"]: c for c in sick.json["checks"]}
            self.assertFalse(names["database"]["ok"])
            self.assertTrue(names["host cluster"]["ok"])
            self.assertEqual(self.ready("/livez").status, 200)
        finally:
            for p in family:
                os.kill(p, signal.SIGCONT)
        s.until(self.ready, lambda r: r.status == 200)


if __name__ == "__main__":
    harness.main()
