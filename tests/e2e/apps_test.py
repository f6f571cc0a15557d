#!/usr/bin/env python3
"""The main job through the running server: create, read, change, observe, delete; and what is refused."""
import json
import threading
import unittest
import uuid

import harness


class Apps(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.space = cls.server.cloudspace("shop")

    def stage(self, status, name):
        return next(s for s in status["stages"] if s["name"] == name)

    def test_create_to_live_update_and_delete_leave_nothing(self):
        s = self.server
        app = s.create(self.space["id"], "web", image="ghcr.io/acme/web:1.0", replicas=2)
        self.assertEqual(app["revision"], 1)
        live = s.wait_phase(app["id"], "live")
        self.assertEqual(live["live_url"], app["url"])
        self.assertEqual(live["ready_replicas"], 2)
        answer = s.ask(app["url"]).json
        self.assertEqual((answer["app"], answer["version"]), ("web", "1.0"))
        config = s.call("GET", f"/api/v1/apps/{app['id']}/config")
        changed = {**config.json, "image": "ghcr.io/acme/web:2.0"}
        self.assertEqual(s.call("PUT", f"/api/v1/apps/{app['id']}/config", changed).status, 200)
        s.wait_phase(app["id"], "live", 2)
        self.assertEqual(s.ask(app["url"]).json["version"], "2.0")
        pods = s.call("GET", f"/api/v1/apps/{app['id']}/pods").json["items"]
        self.assertTrue(all(p["current"] for p in pods if p["phase"] == "Running"), pods)
        log = s.call("GET", f"/api/v1/apps/{app['id']}/logs?tail=50").text
        self.assertIn("method=GET", log)
        events = s.call("GET", f"/api/v1/apps/{app['id']}/events").json["items"]
        self.assertIn("Started", {e["reason"] for e in events})
        resource = s.kube("GET", "/apis/apps.kubeopera.io/v1alpha1/kubeoperaapps").json["items"]
        self.assertEqual(sum(r["spec"]["app_id"] == app["id"] for r in resource), 1)
        self.assertEqual(s.call("DELETE", f"/api/v1/apps/{app['id']}").status, 202)
        s.until(lambda: s.call("GET", f"/api/v1/apps/{app['id']}").status, lambda code: code == 404)
        tree = s.clone()
        self.assertEqual(s.git("ls-files", "*/web/*", cwd=tree), "")
        s.git("fsck", "--strict", cwd=tree)
        self.assertEqual(s.inside(app["tenant_cr_name"], "GET", "/api/v1/namespaces/web").status, 404)
        trailers = s.git("log", "--format=%(trailers:key=Kubeopera-App,valueonly)", cwd=tree)
        self.assertIn(app["id"], trailers)
        # Nothing holds the name or the address any more.
        again = s.create(self.space["id"], "web")
        self.assertEqual(again["host"], app["host"])
        s.call("DELETE", f"/api/v1/apps/{again['id']}")

    def test_causes_of_failure_are_named(self):
        s = self.server
        huge = {"requests": {"cpu": "30"}, "limits": {"cpu": "30"}}
        cases = {
            "pull": ({"image": "registry.invalid/x:1"}, {"ErrImagePull", "ImagePullBackOff"}),
            "crashy": ({"image": "ghcr.io/acme/crash:1"}, {"CrashLoopBackOff"}),
            "oomy": ({"image": "ghcr.io/acme/oom:1"}, {"OOMKilled"}),
            "toobig": ({"resources": huge}, {"Unschedulable", "QuotaExceeded"}),
            "nosecret": ({"env": [{"name": "A", "secret_ref": {"name": "missing", "key": "k"}}]}, {"CreateContainerConfigError"}),
        }
        apps = {name: s.create(self.space["id"], name, **more) for name, (more, _) in cases.items()}
        for name, app in apps.items():
            with self.subTest(name):
                status = s.wait_phase(app["id"], "failed", limit=40)
                work = self.stage(status, "workload")
                self.assertIn(work["cause"], cases[name][1], status)
                self.assertTrue(work["hint"] and work["message"])
        unready = s.create(self.space["id"], "unready", image="ghcr.io/acme/unready:1")
        s.until(lambda: self.stage(s.status(unready["id"]), "workload").get("cause"), lambda c: c == "ProbeFailed", 40)
        for app in [*apps.values(), unready]:
            self.assertEqual(s.call("DELETE", f"/api/v1/apps/{app['id']}").status, 202)

    def test_status_is_never_ahead_of_the_truth_while_others_commit(self):
        s = self.server
        mine, other = s.create(self.space["id"], "mine", image="ghcr.io/acme/web:r1"), s.create(self.space["id"], "other")
        s.wait_phase(mine["id"], "live")
        stop = threading.Event()

        def noise():
            n = 0
            while not stop.is_set():
                n += 1
                spec = s.call("GET", f"/api/v1/apps/{other['id']}/config").json
                s.call("PUT", f"/api/v1/apps/{other['id']}/config", {**spec, "labels": {"n": str(n)}})

        thread = threading.Thread(target=noise)
        thread.start()
        try:
            for revision in range(2, 7):
                spec = s.call("GET", f"/api/v1/apps/{mine['id']}/config").json
                reply = s.call("PUT", f"/api/v1/apps/{mine['id']}", {**spec, "image": f"ghcr.io/acme/web:r{revision}"})
                self.assertEqual(reply.status, 200, reply)
                seen = s.wait_phase(mine["id"], "live", revision)
                self.assertEqual(seen["revision"], revision)
                self.assertEqual(s.ask(mine["url"]).json["version"], f"r{revision}")
                for _ in range(10):
                    self.assertEqual(s.status(mine["id"])["phase"], "live")
        finally:
            stop.set()
            thread.join()

    def test_scaling_restarts_nothing_and_stop_and_pause_say_so(self):
        s = self.server
        app = s.create(self.space["id"], "calm", replicas=1)
        s.wait_phase(app["id"], "live")
        before = {p["name"] for p in s.call("GET", f"/api/v1/apps/{app['id']}/pods").json["items"]}
        spec = s.call("GET", f"/api/v1/apps/{app['id']}/config").json
        s.call("PUT", f"/api/v1/apps/{app['id']}/config", {**spec, "replicas": 3})
        s.wait_phase(app["id"], "live", 2)
        after = {p["name"] for p in s.call("GET", f"/api/v1/apps/{app['id']}/pods").json["items"]}
        self.assertEqual(len(after), 3)
        self.assertTrue(before <= after)
        s.call("PUT", f"/api/v1/apps/{app['id']}/config", {**spec, "stopped": True})
        status = s.wait_phase(app["id"], "stopped", 3)
        self.assertEqual(self.stage(status, "reachability")["state"], "skipped")
        self.assertNotIn("live_url", status)
        s.call("PUT", f"/api/v1/apps/{app['id']}/config", {**spec, "paused": True, "image": "ghcr.io/acme/web:9"})
        s.wait_phase(app["id"], "paused", 4)
        s.call("PUT", f"/api/v1/apps/{app['id']}/config", {**spec, "image": "ghcr.io/acme/web:9"})
        s.wait_phase(app["id"], "live", 5)

    def test_suspended_kustomization_is_said(self):
        s = self.server
        app = s.create(self.space["id"], "held")
        s.wait_phase(app["id"], "live")
        path = "/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/flux-system/kustomizations/held"
        self.assertEqual(s.inside(app["tenant_cr_name"], "PATCH", path, {"spec": {"suspend": True}}).status, 200)
        spec = s.call("GET", f"/api/v1/apps/{app['id']}/config").json
        s.call("PUT", f"/api/v1/apps/{app['id']}/config", {**spec, "image": "ghcr.io/acme/web:2"})
        s.until(lambda: self.stage(s.status(app["id"]), "gitops"), lambda g: g.get("cause") == "Suspended")
        s.inside(app["tenant_cr_name"], "PATCH", path, {"spec": {"suspend": False}})
        s.wait_phase(app["id"], "live", 2)
        # A suspended app can be deleted all the same.
        s.inside(app["tenant_cr_name"], "PATCH", path, {"spec": {"suspend": True}})
        s.call("DELETE", f"/api/v1/apps/{app['id']}")
        s.until(lambda: s.call("GET", f"/api/v1/apps/{app['id']}").status, lambda code: code == 404)
        self.assertEqual(s.inside(app["tenant_cr_name"], "GET", "/api/v1/namespaces/held").status, 404)

    def test_secret_values_reach_the_vcluster_and_nothing_else(self):
        s = self.server
        value = "s3cr3t-" + uuid.uuid4().hex
        app = s.create(self.space["id"], "vault", env=[{"name": "TOKEN", "secret": value}, {"name": "PLAIN", "value": "x"}])
        self.assertNotIn(value, json.dumps(app))
        s.wait_phase(app["id"], "live")
        secret = s.inside(app["tenant_cr_name"], "GET", "/api/v1/namespaces/vault/secrets/vault-env").json
        self.assertIn("TOKEN", secret["data"])
        env = s.call("GET", f"/api/v1/apps/{app['id']}/config/env-vars").json["env"]
        self.assertEqual(env[0]["secret_ref"], {"name": "vault-env", "key": "TOKEN"})
        tree = s.clone()
        self.assertEqual(s.git("log", "-S", value, "--all", "--format=%H", cwd=tree), "")
        self.assertNotIn(value, (s.dir / "server.log").read_text())
        self.assertNotIn(value, s.kube("GET", "/apis/apps.kubeopera.io/v1alpha1/kubeoperaapps").text)
        put = s.call("PUT", f"/api/v1/apps/{app['id']}/config/env-vars", {"env": [{"name": "PLAIN", "value": "y"}]})
        self.assertEqual(put.json["env"], [{"name": "PLAIN", "value": "y"}])

    def test_domains(self):
        s = self.server
        a, b = s.create(self.space["id"], "dom-a", domain="www.acme.example"), s.create(self.space["id"], "dom-b")
        taken = s.call("PATCH", f"/api/v1/apps/{b['id']}/domain", {"domain": "www.acme.example"})
        self.assertEqual((taken.status, taken.json["reason"]), (409, "DomainTaken"))
        ours = s.call("PATCH", f"/api/v1/apps/{b['id']}/domain", {"domain": "x.apps.kubeopera.localhost"})
        self.assertEqual(ours.status, 400)
        moved = s.call("PATCH", f"/api/v1/apps/{b['id']}/domain", {"domain": "b.acme.example"})
        self.assertEqual(moved.json["host"], "b.acme.example")
        s.wait_phase(b["id"], "live", 2)
        self.assertEqual(s.ask(moved.json["url"]).status, 200)
        back = s.call("PATCH", f"/api/v1/apps/{b['id']}/domain", {"domain": None})
        self.assertEqual(back.json["host"], b["host"])
        self.assertEqual(s.call("PATCH", f"/api/v1/apps/{b['id']}/domain", {}).status, 400)
        # Ambiguous default addresses do not clash: app a-b in c, app a in b-c.
        one, two = s.cloudspace("c"), s.cloudspace("b-c")
        hosts = {s.create(one["id"], "a-b")["host"], s.create(two["id"], "a")["host"]}
        self.assertEqual(len(hosts), 2)
        self.assertTrue(all(len(h.split(".")[0]) <= 63 for h in hosts))
        long = s.create(self.space["id"], "n" * 53)
        self.assertLessEqual(len(long["host"].split(".")[0]), 63)
        self.assertEqual(s.wait_phase(long["id"], "live")["phase"], "live")

    def test_bad_requests_say_where_and_leave_nothing(self):
        s = self.server
        before = len(s.call("GET", "/api/v1/apps?limit=500").json["items"])
        bad = {"name": "Bad_Name", "image": "no spaces allowed", "port": 70000, "cloudspace_id": self.space["id"], "extra": 1,
               "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}, "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}
        r = s.call("POST", "/api/v1/apps", bad)
        self.assertEqual(r.status, 400)
        pointers = {e["pointer"] for e in r.json["errors"]}
        self.assertTrue({"/port", "/extra"} <= pointers, pointers)
        del bad["extra"]
        bad["port"] = 80
        r = s.call("POST", "/api/v1/apps", bad)
        pointers = {e["pointer"] for e in r.json["errors"]}
        self.assertTrue({"/name", "/image"} <= pointers, pointers)
        self.assertEqual(s.call("POST", "/api/v1/apps", raw='{"name":"a","name":"b"}', headers={"Content-Type": "application/json"}).json["reason"], "DuplicateKey")
        self.assertEqual(s.call("POST", "/api/v1/apps", raw="[" * 5000, headers={"Content-Type": "application/json"}).status, 400)
        self.assertEqual(s.call("POST", "/api/v1/apps", {"name": "x", "image": "a:1", "port": 80, "cloudspace_id": str(uuid.uuid4())}).json["errors"][0]["pointer"], "/cloudspace_id")
        self.assertEqual(s.call("GET", "/api/v1/apps?limit=0").status, 400)
        self.assertEqual(s.call("GET", "/api/v1/apps?cursor=zzz").json["reason"], "InvalidCursor")
        app = s.create(self.space["id"], "cursors")
        s.wait_phase(app["id"], "live")
        for parts in (["-1"], ["x"], ["18446744073709551615"]):
            cursor = harness.b64url(json.dumps(parts).encode())
            events = s.call("GET", f"/api/v1/apps/{app['id']}/events?cursor={cursor}")
            self.assertEqual((events.status, events.json["reason"]), (400, "InvalidCursor"))
        s.call("DELETE", f"/api/v1/apps/{app['id']}")
        s.until(lambda: s.call("GET", f"/api/v1/apps/{app['id']}").status, lambda code: code == 404)
        self.assertEqual(len(s.call("GET", "/api/v1/apps?limit=500").json["items"]), before)

    def test_etags_idempotency_and_names(self):
        s = self.server
        key = {"Idempotency-Key": str(uuid.uuid4())}
        body = {"name": "once", "image": "ghcr.io/acme/web:1", "port": 80, "cloudspace_id": self.space["id"]}
        first, again = s.call("POST", "/api/v1/apps", body, headers=key), s.call("POST", "/api/v1/apps", body, headers=key)
        self.assertEqual((first.status, first.json["id"]), (201, again.json["id"]))
        self.assertEqual(s.call("POST", "/api/v1/apps", {**body, "name": "twice"}, headers=key).json["reason"], "IdempotencyKeyReused")
        clash = s.call("POST", "/api/v1/apps", body)
        self.assertEqual((clash.status, clash.json["reason"], clash.json["errors"][0]["pointer"]), (409, "AppExists", "/name"))
        path = "/api/v1/apps/" + first.json["id"]
        etag = s.call("GET", path).headers["ETag"]
        spec = s.call("GET", path + "/config").json
        self.assertEqual(s.call("PUT", path, {**spec, "replicas": 2}, headers={"If-Match": etag}).status, 200)
        stale = s.call("PUT", path, {**spec, "replicas": 3}, headers={"If-Match": etag})
        self.assertEqual((stale.status, stale.json["reason"]), (412, "VersionMismatch"))
        same = s.call("PUT", path, {**spec, "replicas": 2})
        self.assertEqual(same.json["revision"], 2)
        self.assertEqual(s.call("PUT", path, {**spec, "name": "other"}).json["errors"][0]["pointer"], "/name")

    def test_changes_at_once_are_all_made(self):
        s = self.server
        app = s.create(self.space["id"], "busy", stopped=True)
        spec = s.call("GET", f"/api/v1/apps/{app['id']}/config").json
        replies = []

        def change(replicas):
            replies.append(s.call("PUT", f"/api/v1/apps/{app['id']}/config", {**spec, "replicas": replicas}).status)
        threads = [threading.Thread(target=change, args=(n,)) for n in range(2, 6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(replies, [200] * 4)
        self.assertEqual(s.call("GET", "/api/v1/apps/" + app["id"]).json["revision"], 5)

    def test_lists_page_through_everything_once(self):
        s = self.server
        space = s.cloudspace("pages")
        names = {f"p{i}" for i in range(7)}
        for n in sorted(names):
            s.create(space["id"], n)
        seen, cursor = [], ""
        while True:
            page = s.call("GET", f"/api/v1/apps?limit=3&cloudspace_id={space['id']}" + (f"&cursor={cursor}" if cursor else "")).json
            seen += [a["name"] for a in page["items"]]
            cursor = page["next_cursor"]
            if not cursor:
                break
        self.assertEqual(sorted(seen), sorted(names))
        blocked = s.call("DELETE", f"/api/v1/cloudspaces/{space['id']}")
        self.assertEqual((blocked.status, blocked.json["reason"]), (412, "CloudSpaceNotEmpty"))

    def test_vclusters_of_a_cloudspace(self):
        s = self.server
        space = s.cloudspace("multi")
        made = s.call("POST", f"/api/v1/cloudspaces/{space['id']}/vclusters", {"name": "blue"})
        self.assertEqual(made.status, 201, made)
        s.until(lambda: s.call("GET", f"/api/v1/cloudspaces/{space['id']}/vclusters/blue").json, lambda v: v["phase"] == "ready")
        app = s.create(space["id"], "placed", tenant_cr_name=made.json["tenant_cr_name"])
        s.wait_phase(app["id"], "live")
        self.assertEqual(s.inside(made.json["tenant_cr_name"], "GET", "/api/v1/namespaces/placed").status, 200)
        self.assertEqual(s.call("DELETE", f"/api/v1/cloudspaces/{space['id']}/vclusters/blue").json["reason"], "VClusterNotEmpty")
        self.assertEqual(s.call("DELETE", f"/api/v1/cloudspaces/{space['id']}/vclusters/multi").json["reason"], "VClusterIsDefault")
        s.call("DELETE", f"/api/v1/apps/{app['id']}")
        s.until(lambda: s.call("GET", f"/api/v1/apps/{app['id']}").status, lambda code: code == 404)
        self.assertEqual(s.call("DELETE", f"/api/v1/cloudspaces/{space['id']}").status, 202)
        s.until(lambda: s.call("GET", f"/api/v1/cloudspaces/{space['id']}").status, lambda code: code == 404)
        self.assertEqual(s.kube("GET", f"/apis/tenancy.kubeopera.io/v1alpha1/namespaces/kubeopera-system/kubeoperatenants/{space['default_vcluster']}").status, 404)

    def test_status_stream_and_followed_logs(self):
        import http.client
        import urllib.parse
        s = self.server
        app = s.create(self.space["id"], "streamed")
        url = urllib.parse.urlsplit(s.info["api_url"])
        c = http.client.HTTPConnection(url.hostname, url.port, timeout=20)
        c.request("GET", f"/api/v1/apps/{app['id']}/deploy-status?watch=true", headers={"Authorization": "Bearer " + s.info["token"]})
        r = c.getresponse()
        self.assertTrue(r.headers["Content-Type"].startswith("text/event-stream"))
        phases = []
        while not phases or phases[-1] != "live":
            line = r.readline().decode()
            if line.startswith("data:"):
                phases.append(json.loads(line[5:])["phase"])
        c.close()
        self.assertEqual(phases[-1], "live")
        c = http.client.HTTPConnection(url.hostname, url.port, timeout=20)
        c.request("GET", f"/api/v1/apps/{app['id']}/logs?follow=true&tail=0", headers={"Authorization": "Bearer " + s.info["token"]})
        r = c.getresponse()
        s.ask(app["url"], "/followed")
        self.assertIn("/followed", r.readline().decode())
        c.close()


if __name__ == "__main__":
    harness.main()
