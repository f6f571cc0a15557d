"""What a crash walk needs: a server that dies or fails at a chosen effect, a client that does not give up, and a look at the
end state from every side: database, host cluster, vCluster, fleet repository and the API itself."""
import collections
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import uuid

import harness

SYSTEM_NAMESPACES = {"default", "kube-system", "kube-public", "kube-node-lease", "flux-system"}
FINALIZER = "kubeopera.io/cleanup"
APPS = "/apis/apps.kubeopera.io/v1alpha1/namespaces/kubeopera-system/kubeoperaapps"
TENANTS = "/apis/tenancy.kubeopera.io/v1alpha1/namespaces/kubeopera-system/kubeoperatenants"
KUSTOMIZATIONS = "/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/flux-system/kustomizations"

STATE_SQL = """set search_path to kubeopera; select json_build_object(
 'open', (select count(*) from outbox where done_at is null and dead_at is null),
 'dead', (select count(*) from outbox where dead_at is not null),
 'events', (select coalesce(json_object_agg(aggregate, n), '{}') from (select aggregate, count(*) n from outbox group by 1) x),
 'apps', (select coalesce(json_object_agg(id, json_build_array(resource, revision, deleting)), '{}') from apps),
 'revisions', (select coalesce(json_object_agg(app_id, n), '{}') from (select app_id, count(*) n from app_revisions group by 1) x),
 'claims', (select coalesce(json_object_agg(host, app_id), '{}') from host_claims),
 'tenants', (select coalesce(json_agg(name), '[]') from vclusters),
 'spaces', (select coalesce(json_agg(id), '[]') from cloudspaces),
 'reserved', (select count(*) from idempotency where status is null),
 'intents', (select count(*) from secret_intents))"""


def scratch():
    """A folder on a disk in memory where there is one: kill -9 loses nothing there either, and syncs cost nothing."""
    base = "/var/tmp"
    if os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free > 2 << 30:
        base = "/dev/shm"
    folder = pathlib.Path(tempfile.mkdtemp(prefix="kow-", dir=base))
    folder.chmod(0o755)
    return folder


class Walker(harness.Server):
    """A server on one folder that is filled from templates."""

    def __init__(self):
        self.dir = scratch()
        self.process = None
        self.plan = ""
        self.refusals = 0  # answers after which the client tried again
        self.environment = {}

    # ---- life and death ----
    def start(self, plan=""):
        self.plan = plan
        log = "effects.after" if self.reached() else "effects"
        try:
            return super().start(KUBEOPERA_WALK=plan, KUBEOPERA_WALK_LOG=str(self.dir / log), **self.environment)
        except AssertionError:
            # An error in the start may end the process, with a word: whoever watches over it starts it again.
            ended_with_word = self.reached() and self.process.poll() == 1
            if not ended_with_word and not self.died():
                raise
        return self.start()

    def died(self):
        """True when it is dead as the plan wanted; another death is a failure."""
        code = self.process.poll()
        if code is None:
            return False
        if code == -signal.SIGKILL and self.plan.endswith(":kill") and self.reached():
            return True
        raise AssertionError(f"the server died by itself, {code}: {self.last_words()}")

    def revive(self):
        """After an answer that did not come: starts it again if that was the planned death."""
        deadline = time.monotonic() + 5
        while not self.died():
            if time.monotonic() > deadline:
                raise AssertionError("no answer from a living server: " + self.last_words())
            time.sleep(0.005)
        self.start()

    def effects(self):
        path = self.dir / "effects"
        return path.read_text().splitlines() if path.exists() else []

    def reached(self):
        return any(" <- " in line for line in self.effects())

    def activity(self):
        """How much has been done so far, in bytes of the log of effects."""
        return sum(p.stat().st_size for p in (self.dir / "effects", self.dir / "effects.after") if p.exists())

    def is_calm(self, time_of_calm):
        """True when for so long nothing is done and nobody dies."""
        begun, before = time.monotonic(), self.activity()
        while time.monotonic() - begun < time_of_calm:
            if self.activity() != before or self.process.poll() is not None:
                return False
            time.sleep(0.01)
        return True

    def end(self):
        """kill -9, and PostgreSQL with it."""
        pid_file = self.dir / "d/postgres/data/postmaster.pid"
        if self.process and self.process.poll() is None:
            self.kill()
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                pid = pid_file.read_text().split()[0]
            except (FileNotFoundError, IndexError):  # PostgreSQL takes it away as it ends
                return
            if not pathlib.Path(f"/proc/{pid}").exists():
                return
            time.sleep(0.005)

    def keep(self, name):
        """An orderly stop; what is on disk becomes a template."""
        if self.stop() != 0:
            raise AssertionError("no orderly stop: " + self.last_words())
        subprocess.run(["cp", "-a", self.dir / "d", self.dir / name], check=True)

    def restore(self, name):
        self.end()
        shutil.rmtree(self.dir / "d", ignore_errors=True)
        for left in ("effects", "effects.after", "server.log"):
            (self.dir / left).unlink(missing_ok=True)
        if name:
            subprocess.run(["cp", "-a", self.dir / name, self.dir / "d"], check=True)

    def close(self):
        self.end()
        super().close()

    # ---- a client that does not give up ----
    def ask_api(self, method, path, body=None, key="", limit=40):
        deadline = time.monotonic() + limit
        while True:
            try:
                r = self.call(method, path, body, headers={"Idempotency-Key": key} if key else None)
            except (OSError, harness.http.client.HTTPException):
                self.revive()
                continue
            busy = r.status == 409 and r.json["reason"] == "RequestInProgress"
            if r.status < 500 and r.status != 429 and not busy:
                return r
            if time.monotonic() > deadline:
                raise AssertionError(f"{method} {path} does not end well: {r}")
            self.refusals += 1
            time.sleep(0.05)

    # ---- every side of the state ----
    def sql(self, text):
        run = subprocess.run(["psql", "-XAtq", "-h", self.dir / "d/postgres/run", "-U", "kubeopera", "-c", text, "postgres"],
                             capture_output=True, text=True)
        if run.returncode:
            raise OSError(run.stderr)
        return run.stdout.strip()

    def fleet(self, *arguments):
        return self.git("-C", str(self.dir / "d/fleet.git"), *arguments)

    def commits(self):
        """How many commits name each (app, revision) in their trailers. A removal that was interrupted is said again, as a commit
        that changes nothing (docs/adr/0010): those do not count."""
        if not (self.dir / "d/fleet.git/refs/heads/main").exists():
            return {}
        value = lambda name: f"%(trailers:key=Kubeopera-{name},valueonly,separator=%x2C)"
        out = collections.Counter()
        rows = [row.split(" ") for row in self.fleet("log", "--format=%T " + value("App") + " " + value("Revision"), "main").splitlines()]
        for (tree, apps, revisions), older in zip(rows, rows[1:] + [[None]]):
            # A commit of several changes names each app and its revision, in the same order.
            if tree != older[0]:
                out.update(zip(apps.split(","), map(int, revisions.split(","))))
        return dict(out)


def directory_of(vcluster, app):
    return f"clusters/{vcluster}/{hashlib.sha256(app.encode()).hexdigest()[:2]}/{app}"


class Model:
    """What the script has asked for, and so what must be there in the end."""

    def __init__(self):
        self.spaces = {}   # id: name of the tenant resource
        self.apps = {}     # id: facts
        self.events = {}   # aggregate: rows of the outbox, done ones included
        self.removed = {}  # id of a deleted app: its last revision
        self.commits_may_lack = False  # a revision that was replaced or deleted at once need not have been committed

    def differences(self, w, all_of_them=True):
        """Whatever is not as it should be, in words; empty when all is well. Not all of them: ends with the first side that is wrong."""
        out = []

        def same(what, is_now, wanted):
            if is_now != wanted:
                out.append(f"{what}: {is_now}, should be {wanted}")

        for side in (self.as_told, self.on_the_host, self.in_the_database, self.in_the_vclusters, self.in_git):
            side(w, same)
            if out and not all_of_them:
                break
        return out

    def in_the_database(self, w, same):
        state = json.loads(w.sql(STATE_SQL))
        same("open outbox rows", state["open"], 0)
        same("dead letters", state["dead"], 0)
        same("outbox rows", state["events"], self.events)
        same("reserved keys", state["reserved"], 0)
        same("intents", state["intents"], 0)
        same("app rows", state["apps"], {i: [a["resource"], a["revision"], False] for i, a in self.apps.items()})
        same("revisions", state["revisions"], {**{i: a["revision"] for i, a in self.apps.items()}, **self.removed})
        same("claims", state["claims"], {a["host"]: i for i, a in self.apps.items()})
        same("vCluster rows", sorted(state["tenants"]), sorted(self.spaces.values()))
        same("CloudSpaces", sorted(state["spaces"]), sorted(self.spaces))

    def on_the_host(self, w, same):
        items = w.kube("GET", APPS).json["items"]
        facts = lambda o: [o["metadata"]["name"], o["spec"]["app_id"], o["spec"]["revision"], o["metadata"].get("finalizers", []),
                           "deletionTimestamp" in o["metadata"], o.get("status", {}).get("revision"),
                           o.get("status", {}).get("phase")]
        same("resources", sorted(map(facts, items)),
             sorted([a["resource"], i, a["revision"], [FINALIZER], False, a["revision"], "Delivered"] for i, a in self.apps.items()))
        tenants = w.kube("GET", TENANTS).json["items"]
        same("tenant resources", sorted((t["metadata"]["name"], "deletionTimestamp" in t["metadata"]) for t in tenants),
             sorted((name, False) for name in self.spaces.values()))
        spaces = {n["metadata"]["name"] for n in w.kube("GET", "/api/v1/namespaces").json["items"]}
        same("host namespaces", sorted(spaces - SYSTEM_NAMESPACES - {"kubeopera-system"}), sorted("vc-" + n for n in self.spaces.values()))

    def in_git(self, w, same):
        last = {**{i: a["revision"] for i, a in self.apps.items()}, **self.removed}
        wanted = {(i, r): 1 for i, revision in last.items() for r in range(1, revision + 1)}
        wanted.update({(i, revision): 2 for i, revision in self.removed.items()})  # its deployment and its removal
        commits = w.commits()
        if self.commits_may_lack:
            wanted = {(i, r): 1 for i, r in wanted if (i, r) in commits or (i in self.apps and r == last[i])}
            for i in self.removed:
                final = max((r for app, r in commits if app == i), default=0)
                wanted.update({(i, final): min(commits[i, final], 2)} if final else {})  # it and its removal
        same("commits", commits, wanted)
        if not commits:
            return
        files = w.fleet("ls-tree", "-r", "--name-only", "main").splitlines()
        same("manifests", sorted({f.rsplit("/", 1)[0] for f in files}), sorted(directory_of(a["vcluster"], a["name"]) for a in self.apps.values()))
        w.fleet("fsck", "--strict")

    def in_the_vclusters(self, w, same):
        for name in self.spaces.values():
            self.in_a_vcluster(w, name, same)

    def in_a_vcluster(self, w, name, same):
        here = {a["name"]: a for a in self.apps.values() if a["vcluster"] == name}
        spaces = {n["metadata"]["name"] for n in w.inside(name, "GET", "/api/v1/namespaces").json["items"]}
        same("namespaces", sorted(spaces - SYSTEM_NAMESPACES), sorted(here))
        flux = w.inside(name, "GET", KUSTOMIZATIONS)
        same("Kustomizations", sorted(k["metadata"]["name"] for k in flux.json["items"]) if flux.status == 200 else [], sorted(here))
        for app, a in here.items():
            d = w.inside(name, "GET", f"/apis/apps/v1/namespaces/{app}/deployments/{app}").json
            c = d.get("spec", {}).get("template", {}).get("spec", {}).get("containers", [{}])[0]
            same("Deployment", (c.get("image"), d.get("spec", {}).get("replicas")), (a["image"], a["replicas"]))
            if a.get("secret"):
                s = w.inside(name, "GET", f"/api/v1/namespaces/{app}/secrets/{app}-env").json
                same("Secret", s.get("data"), {k: harness.base64.b64encode(v.encode()).decode() for k, v in a["secret"].items()})

    def as_told(self, w, same):
        for i, a in self.apps.items():
            s = w.call("GET", f"/api/v1/apps/{i}/deploy-status").json
            same("deploy-status", (s.get("phase"), s.get("revision")), ("live", a["revision"]))
            if s.get("phase") != "live":
                continue
            shown = w.call("GET", f"/api/v1/apps/{i}").json
            same("state", (shown.get("state"), shown.get("revision"), shown.get("image")), ("active", a["revision"], a["image"]))
            same("version answered", w.ask(shown["url"]).json["version"], a["image"].rsplit(":", 1)[1])


def settle(w, model, limit=40, quiet=0.15):
    """Waits until the end state is right and nothing moves any more. A death on the way is followed by a start."""
    deadline = time.monotonic() + limit
    while True:
        before = w.activity()
        late = time.monotonic() > deadline
        try:
            wrong = model.differences(w, all_of_them=late)
        except (OSError, harness.http.client.HTTPException, KeyError, subprocess.CalledProcessError, AssertionError) as e:
            wrong = [f"cannot be seen: {e!r}"]
        if w.died():
            w.start()
        elif wrong:
            if late:
                raise AssertionError("\n  ".join(["the end state is wrong:"] + wrong))
            time.sleep(0.02)
        elif w.activity() == before and w.is_calm(quiet):
            return


# ---- the script ---------------------------------------------------------------------------------------------------------

def key():
    return str(uuid.uuid4())


def expect(reply, *codes):
    if reply.status not in codes:
        raise AssertionError(f"answered {reply}, expected {codes}")
    return reply


def add_space(w, model, name="walk"):
    made = expect(w.ask_api("POST", "/api/v1/cloudspaces", {"name": name}, key()), 201).json
    model.spaces[made["id"]] = made["default_vcluster"]
    model.events[made["default_vcluster"]] = 1
    shown = lambda: w.ask_api("GET", "/api/v1/cloudspaces/" + made["id"])
    harness.Server.until(shown, lambda r: r.status == 200 and r.json["phase"] == "ready")
    return made["id"]


def remove_space(w, model):
    (space, tenant), = model.spaces.items()
    expect(w.ask_api("DELETE", "/api/v1/cloudspaces/" + space), 202, 404)
    del model.spaces[space]
    model.events[tenant] += 1


def request_of(model, name):
    space, = model.spaces
    return {"name": name, "image": "ghcr.io/acme/web:1.0", "port": 8080, "cloudspace_id": space,
            "env": [{"name": "TOKEN", "secret": "s3cret"}]}


def created(model, made):
    resource = made["name"] + "-" + made["id"].replace("-", "")[-12:]
    model.apps[made["id"]] = {"name": made["name"], "resource": resource, "vcluster": made["tenant_cr_name"], "revision": 1,
                              "host": made["host"], "image": made["image"], "replicas": 1, "secret": {"TOKEN": "s3cret"}}
    model.events[resource] = 1
    return made["id"]


def create(w, model, name="web"):
    return created(model, expect(w.ask_api("POST", "/api/v1/apps", request_of(model, name), key()), 201).json)


def create_once(w, model, name="web"):
    """A client that gives up after one request: the app is there, or nothing of it is."""
    try:
        w.call("POST", "/api/v1/apps", request_of(model, name))
    except (OSError, harness.http.client.HTTPException):
        w.revive()
    for app in w.ask_api("GET", "/api/v1/apps").json["items"]:
        created(model, app)


def changed(model, i, reply, **facts):
    a = model.apps[i]
    expect(reply, 200)
    a["revision"] += 1
    a.update(facts)
    model.events[a["resource"]] += 1


def put_config(w, model, i, **change):
    config = w.ask_api("GET", f"/api/v1/apps/{i}/config").json
    changed(model, i, w.ask_api("PUT", f"/api/v1/apps/{i}/config", {**config, **change}), **change)


def only_app(model):
    app, = model.apps
    return app


def update(w, model, i=""):
    put_config(w, model, i or only_app(model), image="ghcr.io/acme/web:2.0")


def scale(w, model, i=""):
    put_config(w, model, i or only_app(model), replicas=3)


def move(w, model, i="", domain="shop.acme.example"):
    i = i or only_app(model)
    changed(model, i, w.ask_api("PATCH", f"/api/v1/apps/{i}/domain", {"domain": domain}), host=domain)


def delete(w, model, i=""):
    i = i or only_app(model)
    a = model.apps[i]
    expect(w.ask_api("DELETE", f"/api/v1/apps/{i}"), 202, 404)
    model.removed[i] = a["revision"]
    model.events[a["resource"]] += 1
    del model.apps[i]


def nothing(w, model):
    pass


# name: template, what is done
STAGES = {"start": ("", nothing), "restart": ("app", nothing), "add space": ("base", add_space), "create": ("space", create), "update": ("app", update),
          "domain": ("app", move), "scale": ("app", scale), "delete": ("app", delete), "remove space": ("space", remove_space)}
GIVING_UP = {"create once": ("space", create_once)}
