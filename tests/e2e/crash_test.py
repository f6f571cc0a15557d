#!/usr/bin/env python3
"""kill -9 in the middle of create, update and delete: after a restart the end state is right, once and whole."""
import time
import unittest

import harness

# Moments after the reply at which the process dies, in seconds; a whole delivery takes about 0.2.
MOMENTS = [0.0, 0.004, 0.01, 0.02, 0.035, 0.05, 0.08, 0.12, 0.2]


class Crash(unittest.TestCase):
    def setUp(self):
        self.server = harness.Server().start()
        self.space = self.server.cloudspace("crash")

    def tearDown(self):
        self.server.close()

    def die_after(self, moment):
        time.sleep(moment)  # the moment is what is tested
        self.server.kill()
        self.server.start()

    def commits(self, app_id):
        """The app's commits; not a removal that was interrupted and said again, which changes nothing (docs/adr/0010)."""
        tree = self.server.clone()
        self.server.git("fsck", "--strict", cwd=tree)
        value = "%(trailers:key=Kubeopera-App,valueonly,separator=%x2C)"
        rows = [row.partition(" ") for row in self.server.git("log", "--format=%T " + value, cwd=tree).splitlines()]
        return [apps for (of, _, apps), older in zip(rows, rows[1:] + [("",)]) if app_id in apps and of != older[0]]

    def check_one_resource(self, app_id):
        items = self.server.kube("GET", "/apis/apps.kubeopera.io/v1alpha1/kubeoperaapps").json["items"]
        self.assertEqual(sum(i["spec"]["app_id"] == app_id for i in items), 1)

    def test_create_update_delete_at_every_moment(self):
        s = self.server
        for i, moment in enumerate(MOMENTS):
            with self.subTest(moment=moment):
                app = s.create(self.space["id"], f"app{i}", image="ghcr.io/acme/web:1")
                self.die_after(moment)
                s.wait_phase(app["id"], "live")
                self.check_one_resource(app["id"])
                self.assertEqual(len(self.commits(app["id"])), 1)
                spec = s.call("GET", f"/api/v1/apps/{app['id']}/config").json
                self.assertEqual(s.call("PUT", f"/api/v1/apps/{app['id']}/config", {**spec, "image": "ghcr.io/acme/web:2"}).status, 200)
                self.die_after(moment)
                s.wait_phase(app["id"], "live", 2)
                self.assertEqual(s.ask(s.call("GET", f"/api/v1/apps/{app['id']}").json["url"]).json["version"], "2")
                self.check_one_resource(app["id"])
                self.assertEqual(len(self.commits(app["id"])), 2)
                self.assertEqual(s.call("DELETE", f"/api/v1/apps/{app['id']}").status, 202)
                self.die_after(moment)
                s.until(lambda: s.call("GET", f"/api/v1/apps/{app['id']}").status, lambda code: code == 404)
                self.assertEqual(len(self.commits(app["id"])), 3)
                self.assertEqual(s.inside(app["tenant_cr_name"], "GET", f"/api/v1/namespaces/app{i}").status, 404)
                items = s.kube("GET", "/apis/apps.kubeopera.io/v1alpha1/kubeoperaapps").json["items"]
                self.assertNotIn(app["id"], [i["spec"]["app_id"] for i in items])

    def test_a_repeated_request_after_a_crash_is_the_same_request(self):
        s = self.server
        key = {"Idempotency-Key": "k-1"}
        body = {"name": "once", "image": "ghcr.io/acme/web:1", "port": 80, "cloudspace_id": self.space["id"]}
        first = s.call("POST", "/api/v1/apps", body, headers=key)
        self.die_after(0)
        again = s.call("POST", "/api/v1/apps", body, headers=key)
        self.assertEqual((again.status, again.json), (201, first.json))
        self.assertEqual(again.headers["ETag"], first.headers["ETag"])
        shown = s.call("GET", "/api/v1/apps/" + first.json["id"]).json
        self.assertEqual(shown["created_at"], first.json["created_at"])

    def test_cloudspace_at_some_moments(self):
        s = self.server
        for i, moment in enumerate([0.0, 0.01, 0.03]):
            made = s.call("POST", "/api/v1/cloudspaces", {"name": f"space{i}"}).json
            self.die_after(moment)
            s.until(lambda: s.call("GET", "/api/v1/cloudspaces/" + made["id"]).json, lambda c: c["phase"] == "ready")
            self.assertEqual(s.call("DELETE", "/api/v1/cloudspaces/" + made["id"]).status, 202)
            self.die_after(moment)
            s.until(lambda: s.call("GET", "/api/v1/cloudspaces/" + made["id"]).status, lambda code: code == 404)

    def test_an_orderly_stop_loses_nothing_and_leaves_no_process(self):
        s = self.server
        app = s.create(self.space["id"], "stay")
        s.wait_phase(app["id"], "live")
        self.assertEqual(s.stop(), 0)
        self.assertFalse((s.dir / "d/embedded.json").exists())
        left = harness.subprocess.run(["pgrep", "-f", str(s.dir)], capture_output=True, text=True).stdout
        self.assertEqual(left, "")
        s.start()
        s.wait_phase(app["id"], "live")
        self.assertEqual(s.ask(app["url"]).status, 200)

    def test_a_database_that_is_down_is_503_and_loses_nothing(self):
        s = self.server
        app = s.create(self.space["id"], "kept")
        s.wait_phase(app["id"], "live")
        pid = int((s.dir / "d/postgres/data/postmaster.pid").read_text().split()[0])
        harness.os.kill(pid, harness.signal.SIGQUIT)
        down = s.until(lambda: s.call("GET", "/api/v1/apps"), lambda r: r.status == 503, 20)
        self.assertGreaterEqual(int(down.headers["Retry-After"]), 1)
        self.assertEqual(down.json["code"], "unavailable")
        refused = s.call("POST", "/api/v1/apps", {"name": "lost", "image": "a:1", "port": 80, "cloudspace_id": self.space["id"]})
        self.assertEqual(refused.status, 503)
        self.assertEqual(s.call("GET", "/readyz", token=None).status, 503)
        self.assertEqual(s.call("GET", "/healthz", token=None).status, 200)
        self.assertEqual(s.ask(app["url"]).status, 200)  # what runs goes on
        s.kill()
        s.start()
        names = {a["name"] for a in s.call("GET", "/api/v1/apps").json["items"]}
        self.assertEqual(names, {"kept"})


if __name__ == "__main__":
    harness.main()
