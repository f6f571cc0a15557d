#!/usr/bin/env python3
"""Every route with every kind of caller. The routes come from the server's own table (its OpenAPI document), so that a new
route without an expected answer cannot be added unseen."""
import time
import unittest
import uuid

import harness

BODIES = {
    "create_app": lambda t: {"name": "n" + uuid.uuid4().hex[:8], "image": "ghcr.io/acme/web:1", "port": 80, "cloudspace_id": t["space"]},
    "update_app": lambda t: t["spec"],
    "put_config": lambda t: t["spec"],
    "change_domain": lambda t: {"tls": True},
    "put_env_vars": lambda t: {"env": []},
    "create_cloudspace": lambda t: {"name": "s" + uuid.uuid4().hex[:8]},
    "create_vcluster": lambda t: {"name": "v" + uuid.uuid4().hex[:8]},
}
DELETES = {"delete_app", "delete_cloudspace", "delete_vcluster"}


class Matrix(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        s = cls.server
        cls.tokens = {
            "own": s.sign(tenant_id="mine"),
            "other tenant": s.sign(tenant_id="theirs"),
            "no tenant": s.sign(tenant_id=None),
            "administrator": s.sign(tenant_id=None, platform_admin=True, permissions=[]),
            "reader": s.sign(tenant_id="mine", permissions=["apps:read", "cloudspaces:read"]),
            "nobody": s.sign(tenant_id="mine", permissions=[]),
            "anonymous": None,
            "expired": s.sign(tenant_id="mine", iat=int(time.time()) - 7200, exp=int(time.time()) - 3600),
            "forged": s.sign(tenant_id="mine")[:-4] + "AAAA",
            "refresh": s.sign(tenant_id="mine", token_use="refresh"),
        }
        space = s.cloudspace("mine", cls.tokens["own"])
        app = s.create(space["id"], "web", token=cls.tokens["own"])
        s.until(lambda: s.call("GET", f"/api/v1/apps/{app['id']}/deploy-status", token=cls.tokens["own"]).json, lambda r: r["phase"] == "live")
        spec = s.call("GET", f"/api/v1/apps/{app['id']}/config", token=cls.tokens["own"]).json
        cls.things = {"space": space["id"], "app": app["id"], "spec": spec, "vcluster": "mine"}
        cls.routes = []
        for path, operations in s.call("GET", "/openapi.json", token=None).json["paths"].items():
            for method, operation in operations.items():
                cls.routes.append((method.upper(), path, operation["operationId"], operation["x-required-permission"]))

    def request(self, method, path, operation, token, things):
        url = path.replace("{appId}", things["app"]).replace("{cloudSpaceId}", things["space"]).replace("{name}", things["vcluster"])
        body = BODIES[operation](things) if operation in BODIES else None
        return self.server.call(method, url, body, token)

    def expected(self, who, method, path, operation, permission):
        """The set of statuses that are right."""
        if who in ("anonymous", "expired", "forged", "refresh"):
            return {401}
        if who in ("no tenant", "nobody"):
            return {403}
        if who == "reader" and permission.endswith(":write"):
            return {403}
        if who == "other tenant":
            if "{" in path or operation == "create_app":
                return {404} if operation != "create_app" else {400}
            return {200, 201}
        if who == "administrator" and operation in ("create_app", "create_cloudspace"):
            return {400}  # must name the tenant
        if operation in DELETES:
            return {202, 412}
        return {200, 201}

    def test_every_route_and_caller(self):
        self.assertGreaterEqual(len(self.routes), 22)
        pairs = 0
        for route in sorted(self.routes, key=lambda r: r[2] in DELETES):
            if route[2] == "delete_app" or route[2] == "delete_cloudspace":
                continue  # below: what they delete is needed here
            for who, token in self.tokens.items():
                with self.subTest(route=route[2], who=who):
                    reply = self.request(*route[:3], token, self.things)
                    self.assertIn(reply.status, self.expected(who, *route), (route, who, reply))
                    pairs += 1
        for operation in ("delete_app", "delete_cloudspace"):
            route = next(r for r in self.routes if r[2] == operation)
            for who, token in sorted(self.tokens.items(), key=lambda t: t[0] in ("own", "administrator")):
                with self.subTest(route=operation, who=who):
                    reply = self.request(*route[:3], token, self.things)
                    self.assertIn(reply.status, self.expected(who, *route) | ({404} if who in ("own", "administrator") else set()), (route, who, reply))
                    pairs += 1
        print(f"{pairs} pairs of {len(self.routes)} routes and {len(self.tokens)} callers")

    def test_anothers_id_answers_like_an_unknown_one(self):
        s, other = self.server, self.tokens["other tenant"]
        for method, path, operation, _ in self.routes:
            if "{" not in path or path.endswith("{name}") and method == "DELETE":
                continue
            unknown = {**self.things, "app": str(uuid.uuid4()), "space": str(uuid.uuid4())}
            theirs = self.request(method, path, operation, other, self.things)
            nothing = self.request(method, path, operation, other, unknown)
            with self.subTest(operation):
                strip = lambda r: {k: v for k, v in r.json.items() if k != "request_id"}
                self.assertEqual((theirs.status, strip(theirs)), (nothing.status, strip(nothing)))

    def test_lists_show_only_the_callers(self):
        s = self.server
        for path in ("/api/v1/apps", "/api/v1/cloudspaces"):
            theirs = s.call("GET", path + "?limit=500", token=self.tokens["other tenant"]).json["items"]
            self.assertNotIn(self.things["app"], [i["id"] for i in theirs])
            self.assertNotIn(self.things["space"], [i["id"] for i in theirs])

    def test_an_administrator_acts_for_a_tenant_by_name(self):
        s, admin = self.server, self.tokens["administrator"]
        made = s.call("POST", "/api/v1/cloudspaces?acting_tenant=third", {"name": "by-admin"}, admin)
        self.assertEqual(made.status, 201, made)
        third = s.sign(tenant_id="third")
        # What it names must be that tenant's.
        app = {"name": "by-admin", "image": "ghcr.io/acme/web:1", "port": 8080}
        astray = s.call("POST", "/api/v1/apps?acting_tenant=third", {**app, "cloudspace_id": self.things["space"]}, admin)
        self.assertEqual((astray.status, [e["pointer"] for e in astray.json["errors"]]), (400, ["/cloudspace_id"]), astray)
        placed = s.call("POST", "/api/v1/apps?acting_tenant=third", {**app, "cloudspace_id": made.json["id"]}, admin)
        self.assertEqual(placed.status, 201, placed)
        self.assertEqual(s.call("GET", "/api/v1/apps/" + placed.json["id"], token=third).status, 200)
        self.assertEqual(s.call("GET", "/api/v1/cloudspaces/" + made.json["id"], token=third).status, 200)
        # For anyone else the parameter means nothing.
        mine = s.call("POST", "/api/v1/cloudspaces?acting_tenant=third", {"name": "still-mine"}, self.tokens["own"])
        self.assertEqual(s.call("GET", "/api/v1/cloudspaces/" + mine.json["id"], token=third).status, 404)


if __name__ == "__main__":
    harness.main()
