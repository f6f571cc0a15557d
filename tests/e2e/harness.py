"""Starts the product as a user would and talks to it over its public faces. Standard library and PyYAML only."""
import base64
import contextlib
import hashlib
import hmac
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse

LONG = os.environ.get("KUBEOPERA_LONG") == "1"  # ./check --long: many more steps
BINARY = os.environ.get("KUBEOPERA", "kubeopera")


def b64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def sign(key, **claims):
    """An access token of a developer; a claim that is None is left out."""
    now = int(time.time())
    full = {"iss": "kubeopera", "aud": "kubeopera", "token_use": "access", "sub": "tester", "iat": now, "exp": now + 600,
            "permissions": ["apps:read", "apps:write", "cloudspaces:read", "cloudspaces:write"]}
    full.update(claims)
    full = {k: v for k, v in full.items() if v is not None}
    head = b64url(json.dumps({"alg": "HS256", "typ": "JWT"}).encode()) + "." + b64url(json.dumps(full).encode())
    return head + "." + b64url(hmac.new(key, head.encode(), hashlib.sha256).digest())


def report(name, what):
    """Says what a test did, in numbers; ./check prints it."""
    print(f"{name}: {what}", file=sys.stderr)
    folder = os.environ.get("KUBEOPERA_FIGURES")
    if folder:
        with open(f"{folder}/{name}.txt", "a") as f:
            f.write(what + "\n")


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.text = status, headers, body.decode(errors="replace")

    @property
    def json(self):
        return json.loads(self.text)

    def __repr__(self):
        return f"{self.status} {self.text[:300]}"


class Server:
    """One `kubeopera embedded` on a folder of its own; survives kill -9 by being started again."""

    def __init__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="kubeopera-e2e-", dir="/var/tmp"))
        self.dir.chmod(0o755)
        self.process = None

    def start(self, **environment):
        self.log = open(self.dir / "server.log", "ab")
        self.process = subprocess.Popen([BINARY, "embedded", "--data-dir", str(self.dir / "d")], stderr=self.log, stdout=self.log,
                                        env={**os.environ, **environment})
        info = self.dir / "d/embedded.json"
        deadline = time.monotonic() + 60
        while True:
            if self.process.poll() is not None:
                raise AssertionError("the server ended: " + self.last_words())
            with contextlib.suppress(OSError, ValueError):
                self.info = json.loads(info.read_text())
                if self.info["pid"] == self.process.pid:
                    return self
            if time.monotonic() > deadline:
                raise AssertionError("the server is not ready: " + self.last_words())
            time.sleep(0.02)

    def last_words(self):
        return (self.dir / "server.log").read_text(errors="replace")[-2000:]

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=30)

    def close(self):
        if self.process and self.process.poll() is None:
            self.kill()
        elif self.process and self.process.returncode not in (0, -signal.SIGKILL):
            print(f"the server ended with {self.process.returncode}; its last words:\n{self.last_words()}", file=sys.stderr)
        shutil.rmtree(self.dir, ignore_errors=True)

    def reload(self):
        self.info = json.loads((self.dir / "d/embedded.json").read_text())
        return self.info

    # ---- the REST API ----
    def call(self, method, path, body=None, token="", headers=None, raw=None):
        url = urllib.parse.urlsplit(self.info["api_url"])
        connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
        all_headers = dict(headers or {})
        token = self.info["token"] if token == "" else token
        if token is not None:
            all_headers["Authorization"] = "Bearer " + token
        data = raw
        if body is not None:
            data = json.dumps(body)
            all_headers.setdefault("Content-Type", "application/json")
        try:
            connection.request(method, path, data, all_headers)
            r = connection.getresponse()
            return Reply(r.status, r.headers, r.read())
        finally:
            connection.close()

    def sign(self, **claims):
        """An access token with the server's own key."""
        return sign((self.dir / "d/token.key").read_bytes(), **claims)

    def cloudspace(self, name, token="", quota=None):
        body = {"name": name}
        if quota:
            body["quota"] = quota
        made = self.call("POST", "/api/v1/cloudspaces", body, token)
        assert made.status == 201, made
        return self.until(lambda: self.call("GET", "/api/v1/cloudspaces/" + made.json["id"], token=token),
                          lambda r: r.status == 200 and r.json["phase"] == "ready").json

    def create(self, space, name, image="ghcr.io/acme/web:1.0", token="", **more):
        body = {"name": name, "image": image, "port": 8080, "cloudspace_id": space, **more}
        made = self.call("POST", "/api/v1/apps", body, token)
        assert made.status == 201, made
        return made.json

    def status(self, app_id):
        return self.call("GET", f"/api/v1/apps/{app_id}/deploy-status").json

    def wait_phase(self, app_id, phase, revision=0, limit=30):
        return self.until(lambda: self.status(app_id), lambda s: s.get("phase") == phase and s.get("revision", 0) >= revision, limit)

    @staticmethod
    def until(read, good, limit=30):
        deadline = time.monotonic() + limit
        while True:
            value = read()
            if good(value):
                return value
            if time.monotonic() > deadline:
                raise AssertionError(f"did not come true in {limit} s; last: {value}")
            time.sleep(0.02)

    # ---- the app's own address ----
    def ask(self, url, path="/"):
        parts = urllib.parse.urlsplit(url)
        _, port, address = self.info["apps_resolve"].split(":")
        context = ssl.create_default_context(cafile=self.info["apps_ca"])
        with socket.create_connection((address, int(port)), timeout=10) as plain:
            with context.wrap_socket(plain, server_hostname=parts.hostname) as tls:
                tls.sendall(f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n".encode())
                data = b""
                while piece := tls.recv(65536):
                    data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        if b"chunked" in head.lower():
            body = b"".join(part.split(b"\r\n", 1)[1] for part in body.split(b"\r\n0\r\n")[:1] if b"\r\n" in part)
        return Reply(int(head.split()[1]), None, body)

    # ---- clusters ----
    def kube(self, method, path, body=None, content_type="application/json"):
        """The host cluster, as its administrator."""
        url = urllib.parse.urlsplit(self.info["kube_url"])
        connection = http.client.HTTPConnection(url.hostname, url.port, timeout=30)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": content_type})
            r = connection.getresponse()
            return Reply(r.status, r.headers, r.read())
        finally:
            connection.close()

    def inside(self, vcluster, method, path, body=None, content_type="application/merge-patch+json"):
        """A vCluster, by its kubeconfig file."""
        import yaml
        path_of = self.until(lambda: self.reload()["vclusters"].get(vcluster), bool, 10)
        config = yaml.safe_load(pathlib.Path(path_of).read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        with tempfile.NamedTemporaryFile() as pem:
            pem.write(base64.b64decode(user["client-certificate-data"]) + b"\n" + base64.b64decode(user["client-key-data"]))
            pem.flush()
            context.load_cert_chain(pem.name)
        url = urllib.parse.urlsplit(cluster["server"])
        connection = http.client.HTTPSConnection(url.hostname, url.port, context=context, timeout=30)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": content_type})
            r = connection.getresponse()
            return Reply(r.status, r.headers, r.read())
        finally:
            connection.close()

    def git(self, *arguments, cwd=None):
        return subprocess.run(["git", *arguments], cwd=cwd, check=True, capture_output=True, text=True).stdout

    def clone(self):
        target = tempfile.mkdtemp(dir=self.dir)
        self.git("clone", "-q", self.info["fleet_url"], target)
        return target


class Case(unittest.TestCase):
    """A test class with one server for all its tests."""
    server: Server

    @classmethod
    def setUpClass(cls):
        cls.server = Server().start()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()


def main():
    """Runs the calling module's tests; with a file name, also writes the report that ./check counts."""
    report = sys.argv.pop(1) if len(sys.argv) > 1 and sys.argv[1].endswith(".json") else None
    program = unittest.main(module="__main__", exit=False, verbosity=2, testRunner=unittest.TextTestRunner(resultclass=Recorder, verbosity=2))
    if report:
        suite = [{"name": name, "classname": cls, "result": "SKIPPED" if why == "skip" else "COMPLETED",
                  **({"failures": [{"failure": why}]} if why not in ("", "skip") else {})} for cls, name, why in program.result.rows]
        pathlib.Path(report).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(report).write_text(json.dumps({"testsuites": [{"testsuite": suite}]}))
    sys.exit(not program.result.wasSuccessful())


class Recorder(unittest.TextTestResult):
    def __init__(self, *a, **k):
        super().__init__(*a, **k)
        self.rows = []

    def _add(self, test, why):
        self.rows.append((type(test).__name__, getattr(test, "_testMethodName", str(test)), why))

    def addSuccess(self, test):
        super().addSuccess(test)
        self._add(test, "")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._add(test, "failed")

    def addError(self, test, err):
        super().addError(test, err)
        self._add(test, "error")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._add(test, "skip")
