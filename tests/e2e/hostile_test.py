#!/usr/bin/env python3
"""Hostile input against the running server, over raw sockets. Each attack states the answer that is right and leaves nothing
behind; each has an accepted twin: the same request without the attack."""
import base64
import concurrent.futures
import glob
import hashlib
import hmac
import json
import pathlib
import re
import socket
import ssl
import subprocess
import time
import urllib.parse
import uuid

import harness
import hostile_bodies as bodies
import hostile_http as wire
import raw_http

COUNTS = """select (select count(*) from S.apps), (select count(*) from S.apps where deleting), (select count(*) from S.app_revisions),
(select count(*) from S.host_claims), (select count(*) from S.cloudspaces), (select count(*) from S.vclusters)"""


class Hostile(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        s = cls.server
        cls.token, cls.other = s.sign(tenant_id="hostile"), s.sign(tenant_id="other")
        cls.admin = s.sign(tenant_id=None, platform_admin=True, permissions=[])
        url = urllib.parse.urlsplit(s.info["api_url"])
        cls.api = (url.hostname, url.port)
        cls.front = ("127.0.0.1", int(s.info["apps_resolve"].split(":")[1]))
        cls.space = s.cloudspace("hostile", cls.token)["id"]
        cls.foreign = s.cloudspace("other", cls.other)
        cls.open_database()
        door = s.create(cls.space, "door", token=cls.token)
        cls.app = s.call("POST", "/api/v1/apps", {**bodies.SPEC, "cloudspace_id": cls.space}, cls.token).json["id"]
        s.until(lambda: cls.get(f"/api/v1/apps/{door['id']}/deploy-status")["phase"], lambda p: p == "live")
        cls.door = door["id"]
        cls.pod = cls.get(f"/api/v1/apps/{cls.door}/pods")["items"][0]["name"]
        cls.spec = cls.get(f"/api/v1/apps/{cls.app}/config")
        cls.attacks = cls.twins = 0
        cls.settle()
        cls.start_slow_clients()

    @classmethod
    def tearDownClass(cls):
        cls.pool.shutdown(cancel_futures=True)
        cls.database.stdin.close()
        cls.database.wait()
        cls.database.stdout.close()
        harness.report("hostile", f"{cls.attacks} attacks refused, {cls.twins} twins accepted")
        super().tearDownClass()

    @classmethod
    def open_database(cls):
        folder = (cls.server.dir / "d/postgres/data/postmaster.pid").read_text().splitlines()[4]
        psql = sorted(glob.glob("/usr/lib/postgresql/*/bin/psql"))[-1]
        cls.database = subprocess.Popen([psql, "-qAtX", "-h", folder, "-U", "kubeopera", "postgres"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        schema = cls.sql("select table_schema from information_schema.tables where table_name = 'host_claims'")
        cls.counts = COUNTS.replace("S.", schema + ".")

    @classmethod
    def sql(cls, query):
        cls.database.stdin.write(query.replace("\n", " ") + ";\n")
        cls.database.stdin.flush()
        return cls.database.stdout.readline().strip()

    @classmethod
    def get(cls, path):
        reply = cls.server.call("GET", path, token=cls.token)
        assert reply.status == 200, reply
        return reply.json

    @classmethod
    def rows(cls):
        return cls.sql(cls.counts)

    @classmethod
    def everything(cls):
        """Rows, resources and commits."""
        s = cls.server
        kinds = ("apps.kubeopera.io/v1alpha1/kubeoperaapps", "tenancy.kubeopera.io/v1alpha1/kubeoperatenants")
        resources = [(i["metadata"]["name"], i["metadata"]["generation"]) for k in kinds for i in s.kube("GET", "/apis/" + k).json["items"]]
        return cls.rows(), sorted(resources), s.git("--git-dir", str(s.dir / "d/fleet.git"), "rev-list", "--count", "--all")

    @classmethod
    def settle(cls):
        """Waits until everything accepted so far has been delivered."""
        def waiting():
            apps = [cls.get("/api/v1/apps/" + a["id"]) for a in cls.get("/api/v1/apps?limit=500")["items"]]
            return [a["name"] for a in apps if a["status"]["observed_revision"] != a["revision"]]
        cls.server.until(waiting, lambda names: not names)

    @staticmethod
    def sign(secret):
        def make(header, claims, key=secret):
            text = lambda part: part if isinstance(part, str) else json.dumps(part)
            signed = ".".join(harness.b64url(text(part).encode()) for part in (header, claims))
            return signed + "." + harness.b64url(hmac.new(key, signed.encode(), hashlib.sha256).digest())
        return make

    def request(self, method, target, headers=(), body=None, token=None):
        lines = [f"{method} {target} HTTP/1.1".encode(), b"Host: api", *headers]
        if token is not False:
            lines.append(b"Authorization: Bearer " + (token or self.token).encode())
        if body is not None:
            if not any(h.lower().startswith(b"content-type") for h in headers):
                lines.append(b"Content-Type: application/json")
            lines.append(b"Content-Length: %d" % len(body))
        return self.raw(b"\r\n".join(lines) + b"\r\n\r\n" + (body or b""))

    def raw(self, data):
        self.seen = self.rows()
        return raw_http.ask(self.api, data)

    def put(self, body, headers=None):
        return self.request("PUT", f"/api/v1/apps/{self.app}/config", headers or (), body)

    def refused(self, answer, status, reason=None, pointer=None):
        """The answer to an attack, and that it changed no row since it was sent."""
        self.assertIsNotNone(answer, "closed without an answer")
        got, pointers = answer.problem()
        self.assertEqual(answer.status, status, answer)
        if reason:
            self.assertEqual(got, reason, answer)
        else:
            self.assertTrue(got, answer)
        if pointer is not None:
            self.assertEqual(pointers, [pointer], answer)
        self.assertEqual(self.rows(), self.seen, "the refused request left something")
        type(self).attacks += 1

    def accepted(self, answer, *statuses):
        self.assertIsNotNone(answer, "closed without an answer")
        self.assertIn(answer.status, statuses or (200,), answer)
        type(self).twins += 1

    # ---- bodies ----

    def test_documents_that_two_readers_read_differently(self):
        text = json.dumps(bodies.SPEC)
        self.accepted(self.put(text.encode()))
        before = self.everything()
        for name, body, reason, pointer in bodies.documents(text):
            with self.subTest(name):
                self.refused(self.put(body), 400, reason, pointer)
        big = text.encode().replace(b'"-v"', b'"' + b"v" * (1 << 20) + b'"')
        self.refused(self.put(big), 413, "BodyTooLarge")
        self.assertEqual(self.everything(), before)
        self.accepted(self.put(text.encode() + b" \r\n\t"))
        self.accepted(self.put(text.replace('"-v"', '"\\u002dv"').encode()))
        self.assertEqual(self.get(f"/api/v1/apps/{self.app}/config"), self.spec)

    def test_bodies_that_are_said_to_be_something_else(self):
        body = json.dumps(self.spec).encode()
        for headers, status, reason in bodies.MEDIA:
            with self.subTest(headers):
                lines = [f"PUT /api/v1/apps/{self.app}/config HTTP/1.1".encode(), b"Host: api", b"Authorization: Bearer " + self.token.encode(),
                         b"Content-Length: %d" % len(body), *headers]
                answer = self.raw(b"\r\n".join(lines) + b"\r\n\r\n" + body)
                if status == 200:
                    self.accepted(answer)
                else:
                    self.refused(answer, status, reason)

    def test_fields_that_lead_elsewhere(self):
        before = self.everything()
        for field, pointer, bad, _ in bodies.FIELDS:
            for value in bad:
                with self.subTest(field=field, value=str(value)[:80]):
                    self.refused(self.put(json.dumps({**self.spec, field: value}).encode()), 400, "InvalidBody", pointer)
        self.assertEqual(self.everything(), before)
        for field, _, _, good in bodies.FIELDS:
            with self.subTest(field=field, twin=str(good)[:80]):
                self.accepted(self.put(json.dumps({**self.spec, field: good}).encode()))
        self.accepted(self.put(json.dumps(self.spec).encode()))
        self.settle()

    def test_creates_that_name_what_is_not_theirs(self):
        before = self.everything()
        body = {"name": "fresh", "image": "a:1", "port": 80, "stopped": True, "cloudspace_id": self.space}
        post = lambda path, value, token=None: self.request("POST", path, (), json.dumps(value).encode(), token)
        for field, value in [("cloudspace_id", self.foreign["id"]), ("cloudspace_id", str(uuid.uuid4())), ("cloudspace_id", "../" + self.space),
                             ("cloudspace_id", self.space + "\n"), ("cloudspace_id", self.space.upper() + "x"), ("cloudspace_id", ""),
                             ("tenant_cr_name", self.foreign["default_vcluster"]), ("tenant_cr_name", "../x"), ("tenant_cr_name", ""), ("tenant_cr_name", "' or true--"),
                             ("domain", "x.apps.kubeopera.localhost"), ("domain", "kubernetes.default.svc"), ("image", "")]:
            with self.subTest(field=field, value=value):
                self.refused(post("/api/v1/apps", {**body, field: value}), 400, "InvalidBody", "/" + field)
        for value in ("Bad", "a_b", "-a", "a" * 41, "../x", "a.b", "", "\u00e4"):
            with self.subTest(name=value):
                self.refused(post("/api/v1/cloudspaces", {"name": value}), 400, "InvalidBody", "/name")
                self.refused(post(f"/api/v1/cloudspaces/{self.space}/vclusters", {"name": value}), 400, "InvalidBody", "/name")
        for quota, pointer in [({"cpu": "-1"}, "/quota/cpu"), ({"cpu": "x"}, "/quota/cpu"), ({"memory": "1e99"}, "/quota/memory"), ({"pods": 0}, "/quota/pods"),
                               ({"pods": 1001}, "/quota/pods"), ({"cpu": ""}, "/quota/cpu"), ({"gpu": "1"}, "/quota/gpu")]:
            with self.subTest(quota=quota):
                self.refused(post("/api/v1/cloudspaces", {"name": "fresh", "quota": quota}), 400, "InvalidBody", pointer)
        self.refused(post("/api/v1/cloudspaces", {"name": "fresh", "display_name": "a\0b"}), 400, "InvalidBody", "/display_name")
        self.refused(post("/api/v1/cloudspaces", {"name": "fresh", "display_name": "a" * 121}), 400, "InvalidBody", "/display_name")
        for path in (f"/api/v1/cloudspaces/{self.foreign['id']}/vclusters", f"/api/v1/cloudspaces/{uuid.uuid4()}/vclusters",
                     "/api/v1/cloudspaces/x/vclusters", f"/api/v1/cloudspaces/{self.space}x/vclusters"):
            self.refused(post(path, {"name": "fresh"}), 404, "CloudSpaceNotFound")
        for query in ("?dry_run=true", "?tenant_id=other", "?fieldManager=x"):
            self.refused(post("/api/v1/apps" + query, body), 400, "InvalidQuery")
        self.assertEqual(self.everything(), before)
        self.accepted(post("/api/v1/apps", body), 201)
        self.accepted(post("/api/v1/apps?acting_tenant=other", {**body, "name": "fresher"}), 201)
        self.settle()

    # ---- framing, paths, queries ----

    def frame(self, headers, body=b"", line=None, host=b"Host: api\r\n"):
        line = line or self.frame_line
        return line + b"\r\n" + host + b"Authorization: Bearer " + self.token.encode() + b"\r\nContent-Type: application/json\r\n" + headers + b"\r\n" + body

    def test_requests_that_two_servers_would_cut_differently(self):
        self.frame_line = f"PUT /api/v1/apps/{self.app}/config HTTP/1.1".encode()
        make = lambda *a: self.frame(*a)
        make.line = self.frame_line
        smuggled = self.frame(b"", b"", f"DELETE /api/v1/apps/{self.app} HTTP/1.1".encode())
        before = self.everything()
        changed = json.dumps({**self.spec, "replicas": 7}).encode()
        for name, attack, status, reason in wire.framing(make, changed):
            with self.subTest(name), raw_http.Connection(self.api) as c:
                self.seen = self.rows()
                c.send(attack + smuggled)
                answers = c.answers()
                self.assertEqual(len(answers), 1, answers)
                self.refused(answers[0], status, reason)
                self.assertEqual(answers[0].header("connection"), "close")
        self.assertEqual(self.everything(), before)
        same = json.dumps(self.spec).encode()
        length = b"Content-Length: %d\r\n" % len(same)
        many = b"".join(b"1\r\n%c\r\n" % byte for byte in same) + b"000;last=\"yes\"\r\nX-Trailer: z\r\n\r\n"
        for twin in (make(length, same), make(wire.CHUNKED, wire.chunk(same)), make(wire.CHUNKED, many), make(length + b"A: b\r\n" * 120, same),
                     make(length + b"A: " + b"b" * 30_000 + b"\r\n", same), make(length + b"X-Accented: \xc3\xa9\tx\r\n", same),
                     make(length, same, make.line, b"hOsT:  [::1]:8080 \t\r\n"), make(b"Content-Length: 00%d\r\n" % len(same), same)):
            self.accepted(raw_http.ask(self.api, twin))

    def test_what_follows_an_answered_refusal_is_answered_in_order(self):
        self.frame_line = f"PUT /api/v1/apps/{self.app}/config HTTP/1.1".encode()
        same = json.dumps(self.spec).encode()
        with raw_http.Connection(self.api) as c:
            c.send(self.frame(b"Content-Length: 2\r\n", b"{]") + self.frame(b"Content-Length: %d\r\n" % len(same), same) +
                   self.frame(b"", b"", b"GET /nowhere HTTP/1.1") + self.frame(b"Connection: close\r\n", b"", b"GET /api/v1/apps HTTP/1.1"))
            self.assertEqual([a.status for a in c.answers()], [400, 200, 404, 200])

    def test_paths_that_mean_another_path_to_another_reader(self):
        for attack, status, reason, twin in wire.PATHS:
            with self.subTest(attack[:80]):
                self.refused(self.request("GET", attack.replace("{}", self.app)), status, reason)
                self.refused(self.request("DELETE", attack.replace("{}", self.app)), status, None)
                self.accepted(self.request("GET", twin.replace("{}", self.app)))

    def test_queries_that_widen_or_overflow(self):
        def fill(text):
            text = text.replace("{app}", self.door).replace("{space}", self.space).replace("{pod}", self.pod)
            return re.sub(r"\{cursor:(.*?)\}", lambda m: harness.b64url(m.group(1).encode()), text)
        for attack, expected, twin in wire.QUERIES:
            with self.subTest(attack[:90]):
                answer = self.request("GET", fill(attack))
                if not expected:
                    self.assertEqual((answer.status, answer.json["items"]), (200, []), answer)
                elif expected.startswith("?"):
                    self.refused(answer, 400, None, expected)
                else:
                    self.refused(answer, 404, expected)
                self.accepted(self.request("GET", fill(twin)))

    def test_methods_and_names_in_segments(self):
        for method in ("OPTIONS", "TRACE", "POST", "PROPFIND", "get", "Get", "DELETE2"):
            with self.subTest(method):
                answer = self.request(method, f"/api/v1/apps/{self.app}")
                self.refused(answer, 405, "MethodNotAllowed")
                self.assertEqual(answer.header("allow"), "DELETE, GET, PUT")
        for override in (b"X-HTTP-Method-Override: DELETE", b"X-Method-Override: DELETE", b"X-HTTP-Method: DELETE"):
            self.accepted(self.request("GET", f"/api/v1/apps/{self.app}", [override]))
            self.assertEqual(self.rows(), self.seen)
        vclusters = f"/api/v1/cloudspaces/{self.space}/vclusters/"
        for name in ("hostile%20", "Hostile", "%27%20or%20true--", "a" * 300, self.foreign["default_vcluster"], "other", "*", "%F0%9F%92%A9"):
            with self.subTest(name):
                self.refused(self.request("GET", vclusters + name), 404, "VClusterNotFound")
                self.refused(self.request("DELETE", vclusters + name), 404, "VClusterNotFound")
        self.accepted(self.request("GET", vclusters + "hostile"))
        listed = self.request("GET", vclusters[:-1])
        self.assertNotIn(self.foreign["default_vcluster"], [v["tenant_cr_name"] for v in listed.json["items"]])
        self.accepted(listed)
        for value in (b"", b"1;x", b"-1", b"+1", b"0x1", b"1,2", b"18446744073709551616", b"\xd9\xa1"):
            with self.subTest(last_event_id=value):
                self.refused(self.request("GET", f"/api/v1/apps/{self.app}/deploy-status?watch=true", [b"Last-Event-ID: " + value]), 400, "BadEventId")
        with raw_http.Connection(self.api) as c:
            c.send(self.frame(b"Last-Event-ID: 7\r\nAccept: text/event-stream\r\n", b"", f"GET /api/v1/apps/{self.app}/deploy-status HTTP/1.1".encode()))
            self.server.until(lambda: c.data + c.socket.recv(65536), lambda data: b"event: status" in data)

    # ---- who asks ----

    def test_tokens_that_are_not_exactly_ours(self):
        good, rows = bodies.tokens(self.sign((self.server.dir / "d/token.key").read_bytes()))
        for name, headers, reason in rows:
            with self.subTest(name):
                answer = self.request("GET", "/api/v1/apps", headers, token=False)
                self.refused(answer, 401, reason)
                self.assertEqual(answer.header("www-authenticate"), "Bearer")
        for query in ("access_token", "token", "authorization"):
            self.refused(self.request("GET", f"/api/v1/apps/{self.app}?{query}={good}", token=False), 401, "TokenMissing")
        self.accepted(self.request("GET", "/api/v1/apps", [b"Authorization: Bearer " + good.encode()], token=False))
        self.accepted(self.request("GET", "/api/v1/apps", [b"authorization:Bearer " + good.encode()], token=False))
        # A reader's token stays one, whatever stands beside it.
        for more in (b"X-Tenant-Id: other", b"X-Permissions: apps:write", b"X-Platform-Admin: true", b"Connection: close, Authorization"):
            self.refused(self.request("DELETE", f"/api/v1/apps/{self.app}", [more], token=good), 403, "NotAllowed")

    def test_identity_comes_from_the_token_alone(self):
        for name in ("X-Tenant-Id", "X-Tenant_Id", "X.Tenant.Id", "X-Acting-Tenant", "X-Forwarded-User", "X-Original-URL", "X-Rewrite-URL", "X-Forwarded-Uri"):
            with self.subTest(name):
                answer = self.request("GET", "/api/v1/cloudspaces", [name.encode() + b": other", b"X-Tenant-Id: third"])
                self.assertEqual([i["id"] for i in answer.json["items"]], [self.space], answer)
                self.accepted(answer)
        for query in ("acting_tenant=other", "acting_tenant=other&acting_tenant=third", "acting_tenant=", "acting%5Ftenant=other"):
            with self.subTest(query):
                answer = self.request("GET", "/api/v1/cloudspaces?" + query)
                self.assertEqual([i["id"] for i in answer.json["items"]], [self.space], answer)
                self.accepted(answer)
        create = lambda query, token, **more: self.request("POST", "/api/v1/cloudspaces?" + query, (), json.dumps({"name": "acting", **more}).encode(), token)
        for query in ("", "acting_tenant=", "acting_tenant=a&acting_tenant=b", "acting_tenant=a&acting%5Ftenant=b", "acting_tenant=a%20b", "acting_tenant=a%2500".replace("%25", "%"),
                      "acting_tenant=" + "a" * 64, "acting_tenant=%C3%A4", "acting_tenant[]=a", "Acting_Tenant=a", "acting-tenant=a"):
            with self.subTest(admin=query):
                self.refused(create(query, self.admin), 400, None)
        self.refused(create("acting_tenant=third", self.admin, acting_tenant="other"), 400, "InvalidBody", "/acting_tenant")
        self.refused(create("acting_tenant[]=other", self.token), 400, "InvalidQuery", "?acting_tenant[]")
        self.refused(self.request("GET", "/api/v1/apps", token=self.server.sign(tenant_id=None)), 403, "TenantMissing")
        self.refused(self.request("GET", "/api/v1/apps", token=self.server.sign(tenant_id="")), 403, "TenantMissing")
        self.accepted(create("acting_tenant=third", self.admin), 201)

    def test_idempotency_keys_are_one_callers(self):
        body = json.dumps({"name": "keyed", "image": "a:1", "port": 80, "stopped": True, "cloudspace_id": self.space}).encode()
        post = lambda *headers, token=None: self.request("POST", "/api/v1/apps", headers, body, token)
        for key in (b"", b" ", b"k" * 201, b"\xff", "\u00e4".encode()):
            with self.subTest(key=key):
                self.refused(post(b"Idempotency-Key: " + key), 400, "InvalidIdempotencyKey")
        self.refused(post(b"Idempotency-Key: a", b"Idempotency-Key: b"), 400, "DuplicateHeader")
        # "hostile|a" of "b" and "hostile" of "a|b" are two callers.
        first, second = self.server.sign(tenant_id="hostile", sub="a|b"), self.server.sign(tenant_id="hostile|a", sub="b")
        made = post(b"Idempotency-Key: shared", token=first)
        self.accepted(made, 201)
        self.refused(post(b"Idempotency-Key: shared", token=second), 400, "InvalidBody", "/cloudspace_id")
        replay = post(b"Idempotency-Key: shared", token=first)
        self.accepted(replay, 201)
        self.assertEqual((replay.header("idempotency-replayed"), replay.json["id"]), ("true", made.json["id"]))
        self.settle()

    # ---- kubeconfigs ----

    def test_a_tampered_kubeconfig_leads_nowhere(self):
        s = self.server
        made = self.request("POST", f"/api/v1/cloudspaces/{self.space}/vclusters", (), b'{"name":"tampered"}').json
        s.until(lambda: self.get(f"/api/v1/cloudspaces/{self.space}/vclusters/tampered")["phase"], lambda p: p == "ready")
        tenant = s.kube("GET", "/apis/tenancy.kubeopera.io/v1alpha1/namespaces/kubeopera-system/kubeoperatenants/" + made["tenant_cr_name"]).json
        path = f"/api/v1/namespaces/{tenant['status']['host_namespace']}/secrets/vc-{made['tenant_cr_name']}"
        good = s.kube("GET", path).json["data"]["config"]
        marker = s.dir / "executed"

        def put(text):
            patch = {"data": {"config": base64.b64encode(text).decode()}}
            self.assertEqual(s.kube("PATCH", path, patch, "application/merge-patch+json").status, 200)

        def pods():
            reply = s.call("GET", f"/api/v1/apps/{app}/pods", token=self.token)
            return reply.status, reply.json.get("reason"), [e["pointer"] for e in reply.json.get("errors", [])]
        put(bodies.kubeconfig(base64.b64decode(good), *bodies.KUBECONFIGS[0][:2]))
        app = s.create(self.space, "lured", token=self.token, tenant_cr_name=made["tenant_cr_name"])["id"]
        for part, fields, pointer in bodies.kubeconfigs(marker):
            with self.subTest(pointer):
                put(bodies.kubeconfig(base64.b64decode(good), part, fields))
                s.until(pods, lambda seen: seen == (412, "KubeconfigRefused", [pointer]))
                type(self).attacks += 1
        for text in (b"a: &x [*x]", base64.b64decode(good) + b"---\na: b\n"):
            with self.subTest(text[:10]):
                put(text)
                s.until(pods, lambda seen: seen == (412, "KubeconfigRefused", [""]) or seen == (412, "KubeconfigRefused", ["/a"]))
                type(self).attacks += 1
        self.assertFalse(marker.exists())
        put(base64.b64decode(good))
        s.until(pods, lambda seen: seen[0] == 200)
        s.until(lambda: self.get(f"/api/v1/apps/{app}/deploy-status")["phase"], lambda phase: phase == "live")
        type(self).twins += 1

    # ---- the other doors ----

    def test_git_serves_one_repository_to_read(self):
        url = urllib.parse.urlsplit(self.server.info["fleet_url"])
        ask = lambda method, target, *headers, body=b"": raw_http.ask((url.hostname, url.port), b"\r\n".join(
            [f"{method} {target} HTTP/1.1".encode(), b"Host: git", b"Content-Length: %d" % len(body), *headers]) + b"\r\n\r\n" + body)
        before = self.everything()
        for method, target, status, *headers in [
                ("GET", "/fleet.git/HEAD", 404), ("GET", "/fleet.git/config", 404), ("GET", "/fleet.git/objects/info/packs", 404),
                ("GET", "/fleet.git/../fleet.git/info/refs?service=git-upload-pack", 404), ("GET", "/other.git/info/refs?service=git-upload-pack", 404),
                ("GET", "/fleet.git%2finfo/refs?service=git-upload-pack", 404), ("GET", "/fleet.git//info/refs?service=git-upload-pack", 404),
                ("GET", "/fleet.git/info/refs", 404), ("GET", "/fleet.git/info/refs?service=git-upload-archive", 404),
                ("GET", "/fleet.git/info/refs?service=git-upload-pack&service=git-receive-pack", 404), ("GET", "/fleet.git/info/refs?service=--exec=id", 404),
                ("GET", "/fleet.git/info/refs?service=git-receive-pack", 403), ("POST", "/fleet.git/git-receive-pack", 403, b"Content-Type: application/x-git-receive-pack-request"),
                ("POST", "/fleet.git/git-upload-pack", 415, b"Content-Type: text/plain"), ("POST", "/fleet.git/git-upload-pack", 415),
                ("GET", "/fleet.git/git-upload-pack", 405), ("POST", "/fleet.git/git-upload-archive", 404),
                ("POST", "/fleet.git/git-upload-pack", 400, b"Content-Type: application/x-git-upload-pack-request", b"Content-Encoding: br")]:
            with self.subTest(method=method, target=target):
                answer = ask(method, target, *headers)
                self.assertEqual(answer.status, status, answer)
                type(self).attacks += 1
        for body in (b"zzzz", b"0003", b"fff0", b"0032want " + b"0" * 40 + b"\n00000009done\n", b"\0" * 100):
            answer = ask("POST", "/fleet.git/git-upload-pack", b"Content-Type: application/x-git-upload-pack-request", body=body)
            self.assertNotIn(b"PACK", answer.body if answer else b"")  # an error of git's, or cut short
            type(self).attacks += 1
        protocol = b"Git-Protocol: version=2\x20--upload-pack=id"
        self.accepted(ask("GET", "/fleet.git/info/refs?service=git-upload-pack"))
        self.accepted(ask("GET", "/fleet.git/info/refs?service=git-upload-pack", protocol))
        self.assertEqual(self.everything(), before)

    def test_broken_tls_at_the_front_door(self):
        context = ssl.create_default_context(cafile=self.server.info["apps_ca"])
        name = self.get(f"/api/v1/apps/{self.door}")["host"]
        hello_in, hello_out = ssl.MemoryBIO(), ssl.MemoryBIO()
        half = context.wrap_bio(hello_in, hello_out, server_hostname=name)
        with self.assertRaises(ssl.SSLWantReadError):
            half.do_handshake()
        hello = hello_out.read()
        for data in (b"GET / HTTP/1.1\r\nHost: " + name.encode() + b"\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"\0" * 300, b"\x80\x2e\x01\x00\x02", hello[:40], hello[:-1],
                     hello[:5], b"\x15\x03\x03\x00\x02\x02\x28", hello[:3] + b"\xff\xff" + hello[5:], bytes([hello[0] ^ 1]) + hello[1:], b"\0" * 20_000):
            with self.subTest(data[:8]), raw_http.Connection(self.front) as c:
                c.send(data)
                c.half_close()
                self.assertIsNone(c.answer())
                self.assertNotIn(b"HTTP/", c.data)
                type(self).attacks += 1
        wrap = lambda plain: context.wrap_socket(plain, server_hostname=name, suppress_ragged_eofs=True)
        request = b"GET /tls HTTP/1.1\r\nHost: " + name.encode() + b"\r\n"
        for part in (request[:20], request, b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf"):
            # Cut below TLS: no close_notify, only the end of the TCP stream.
            plain = socket.create_connection(self.front, timeout=20)
            tls = wrap(plain)
            tls.sendall(part)
            descriptor = socket.socket(fileno=tls.detach())
            descriptor.settimeout(20)
            descriptor.shutdown(socket.SHUT_WR)
            while descriptor.recv(65536):
                pass  # alerts and tickets; the server must close
            descriptor.close()
            type(self).attacks += 1
        logs = self.server.call("GET", f"/api/v1/apps/{self.door}/logs", token=self.token).text
        self.assertNotIn("path=\"/tls\"", logs)
        with raw_http.Connection(self.front, wrap=wrap) as c:
            c.send(request + b"\r\n")
            self.accepted(c.answer())
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.load_verify_locations(self.server.info["apps_ca"])
        old.maximum_version = ssl.TLSVersion.TLSv1_1
        old.set_ciphers("ALL:@SECLEVEL=0")
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            old.wrap_socket(socket.create_connection(self.front, timeout=20), server_hostname=name)

    @classmethod
    def start_slow_clients(cls):
        """They take ten seconds each: all at once, while the other tests run."""
        line = f"PUT /api/v1/apps/{cls.app}/config HTTP/1.1\r\n".encode()
        common = b"Host: api\r\nAuthorization: Bearer " + cls.token.encode() + b"\r\nContent-Type: application/json\r\n"
        changed = json.dumps({**cls.spec, "replicas": 9}).encode()
        size = b"%x\r\n" % len(changed)
        head, chunked = line + common + b"Content-Length: %d\r\n\r\n" % len(changed), line + common + wire.CHUNKED + b"\r\n"

        def drip(data, slow):
            """Sends data, then slow each half second, until the server answers or closes."""
            with raw_http.Connection(cls.api, timeout=0.5) as c:
                c.send(data)
                start = time.monotonic()
                while time.monotonic() < start + 60:
                    try:
                        return c.answer()
                    except TimeoutError:
                        c.send(slow)
            raise AssertionError("neither answered nor closed in a minute")

        def vanish(data):
            with raw_http.Connection(cls.api) as c:
                c.send(data)
                c.half_close()
                return c.answer()
        slow = {"head": (b"GET / HTTP/1.1\r\n", b"a"), "request line": (b"G", b"E"), "body": (head, b" "), "chunk size": (chunked, b"0"),
                "chunk": (chunked + b"ff\r\n", b" "), "trailer": (chunked + b"1\r\n{\r\n0\r\n", b"A")}
        gone = {"half a head": head[:60], "half a body": head + changed[:-1], "no body": head, "half a chunk": chunked + size + changed[:-1],
                "no last chunk": chunked + size + changed + b"\r\n", "no end of trailers": chunked + size + changed + b"\r\n0\r\n"}
        cls.pool = concurrent.futures.ThreadPoolExecutor(16)
        cls.slow = {name: cls.pool.submit(drip, *work) for name, work in slow.items()}
        cls.gone = {name: cls.pool.submit(vanish, data) for name, data in gone.items()}
        cls.barely = head, changed.replace(b'"replicas": 9', b'"replicas": 1')

    def test_slow_and_vanishing_clients(self):
        for name, future in self.gone.items():
            with self.subTest(vanished=name):
                self.assertIsNone(future.result())
                type(self).attacks += 1
        for name, future in self.slow.items():
            with self.subTest(slow=name):
                answer = future.result()
                if name == "chunk size":
                    self.assertEqual(answer.problem()[0], "BadChunk")  # sixteen digits come first
                else:
                    self.assertEqual((answer.status, answer.problem()[0]), (408, "RequestTimeout"))
                type(self).attacks += 1
        self.assertEqual(self.get(f"/api/v1/apps/{self.app}/config"), self.spec)
        head, same = self.barely
        with raw_http.Connection(self.api) as c:  # in parts, but in time
            for part in (head[:30], head[30:], same[:10], same[10:]):
                c.send(part)
            self.accepted(c.answer())


if __name__ == "__main__":
    harness.main()
