"""A real control plane on loopback: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok's fake kubelet."""
import base64
import http.client
import json
import pathlib
import shutil
import ssl
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import parts  # noqa: E402
import stages  # noqa: E402
from process import Process, free_ports, wait_until  # noqa: E402

NODE = {"cpu": "64", "memory": "256Gi", "pods": "1000", "ephemeral-storage": "200Gi"}
LOG_LINES = 20


class Authority:
    """A certificate authority by openssl."""

    def __init__(self, folder, name):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.cert, self._key = self.folder / "ca.crt", self.folder / "ca.key"
        _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", self._key, "-out", self.cert,
                 "-days", "30", "-subj", f"/CN={name}", "-addext", "keyUsage=critical,keyCertSign,cRLSign")

    def issue(self, file, common_name, organization="", sans="", ends=""):
        """A certificate for servers and clients. sans as openssl writes them; ends: its last moment, YYYYMMDDHHMMSSZ."""
        cert, key, request = (self.folder / f"{file}.{x}" for x in ("crt", "key", "csr"))
        subject = (f"/O={organization}" if organization else "") + f"/CN={common_name}"
        _openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", request, "-subj", subject)
        text = "extendedKeyUsage=serverAuth,clientAuth\nkeyUsage=critical,digitalSignature\n" + (f"subjectAltName={sans}\n" if sans else "")
        with tempfile.TemporaryDirectory(dir=self.folder) as work:
            extensions = pathlib.Path(work) / "ext"
            if not ends:
                extensions.write_text(text)
                _openssl("x509", "-req", "-in", request, "-CA", self.cert, "-CAkey", self._key, "-CAcreateserial", "-out", cert, "-days", "20", "-extfile", extensions)
            else:  # only `ca` takes dates
                for name, content in (("index", ""), ("serial", "1001\n"), ("conf", f"[ca]\ndefault_ca=d\n[d]\ndatabase={work}/index\nserial={work}/serial\n"
                                      f"new_certs_dir={work}\ndefault_md=sha256\npolicy=p\nx509_extensions=x\n[p]\ncommonName=supplied\norganizationName=optional\n[x]\n" + text)):
                    (pathlib.Path(work) / name).write_text(content)
                _openssl("ca", "-batch", "-config", f"{work}/conf", "-cert", self.cert, "-keyfile", self._key, "-in", request, "-out", cert, "-notext",
                         "-startdate", "20200101000000Z", "-enddate", ends)
        return cert, key


def _openssl(*arguments):
    done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"openssl {arguments[0]}: {done.stderr[-800:]}")


class Refused(Exception):
    def __init__(self, status, body):
        super().__init__(f"{status}: {body.get('message') if isinstance(body, dict) else body}")
        self.status, self.body = status, body


class Plane:
    """One cluster. start() returns when it serves and its node is ready."""

    def __init__(self, name, folder=None, nodes=1):
        self.name, self.nodes = name, nodes
        self.owned = folder is None
        self.folder = pathlib.Path(folder or tempfile.mkdtemp(prefix="kubeopera-real-", dir="/var/tmp"))
        self.folder.mkdir(parents=True, exist_ok=True)
        self.processes = {}

    # ---- life ----
    def start(self):
        programs = {p: parts.program(p) for p in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")}
        self.authority = Authority(self.folder / "pki", f"{self.name} authority")
        self.port, self.etcd_port, peer, self.kubelet_port = free_ports(4)
        self.url, self.etcd_url = f"https://127.0.0.1:{self.port}", f"http://127.0.0.1:{self.etcd_port}"
        sans = "IP:127.0.0.1,IP:10.0.0.1,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default.svc"
        serving, serving_key = self.authority.issue("serving", "kube-apiserver", sans=sans)
        admin, admin_key = self.authority.issue("admin", "admin", "system:masters")
        accounts = self.folder / "pki/accounts.key"
        _openssl("ecparam", "-genkey", "-name", "prime256v1", "-noout", "-out", accounts)
        self.kubeconfig = self.write_kubeconfig("admin.kubeconfig", admin, admin_key)
        self._context = ssl.create_default_context(cafile=self.authority.cert)
        self._context.load_cert_chain(admin, admin_key)
        stages.write(self.folder / "kwok.yaml", parts.module("kwok", "sigs.k8s.io/kwok"), self._log_file())

        def add(name, *arguments, environment=None):
            self.processes[name] = Process(name, arguments, self.folder, environment)
            return self.processes[name]

        add("etcd", programs["etcd"], "--data-dir", self.folder / "etcd", "--unsafe-no-fsync", "--log-level", "error",
            "--listen-client-urls", self.etcd_url, "--advertise-client-urls", self.etcd_url, "--listen-peer-urls", f"http://127.0.0.1:{peer}",
            "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}", "--initial-cluster", f"default=http://127.0.0.1:{peer}").start()
        self.server = add("kube-apiserver", programs["kube-apiserver"], f"--etcd-servers={self.etcd_url}", f"--secure-port={self.port}", "--bind-address=127.0.0.1",
                          f"--tls-cert-file={serving}", f"--tls-private-key-file={serving_key}", f"--client-ca-file={self.authority.cert}",
                          "--service-cluster-ip-range=10.0.0.0/24", f"--service-account-key-file={accounts}", f"--service-account-signing-key-file={accounts}",
                          "--service-account-issuer=https://kubernetes.default.svc", "--authorization-mode=RBAC", "--allow-privileged",
                          f"--kubelet-client-certificate={admin}", f"--kubelet-client-key={admin_key}", f"--kubelet-certificate-authority={self.authority.cert}",
                          "--kubelet-preferred-address-types=InternalIP", "--v=1").start()
        wait_until("the API server serves", self._ready, 60)
        add("kube-controller-manager", programs["kube-controller-manager"], f"--kubeconfig={self.kubeconfig}", f"--service-account-private-key-file={accounts}",
            f"--root-ca-file={self.authority.cert}", "--leader-elect=false", "--secure-port=0", "--node-monitor-grace-period=1h", "--kube-api-qps=500", "--kube-api-burst=1000",
            "--controllers=*,-nodeipam,-node-route-controller,-cloud-node-lifecycle-controller").start()
        add("kube-scheduler", programs["kube-scheduler"], f"--kubeconfig={self.kubeconfig}", "--leader-elect=false", "--secure-port=0",
            "--kube-api-qps=500", "--kube-api-burst=1000").start()
        add("kwok", programs["kwok"], "--kubeconfig", self.kubeconfig, "--config", self.folder / "kwok.yaml", "--manage-all-nodes=true", "--node-ip=127.0.0.1",
            f"--node-port={self.kubelet_port}", f"--server-address=127.0.0.1:{self.kubelet_port}", "--tls-cert-file", serving, "--tls-private-key-file", serving_key).start()
        for i in range(self.nodes):
            node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{i}", "annotations": {"kwok.x-k8s.io/node": "fake"},
                    "labels": {"kubernetes.io/hostname": f"node-{i}", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}}}
            self.call("POST", "/api/v1/nodes", node)
            self.call("PATCH", f"/api/v1/nodes/node-{i}/status", {"status": {"allocatable": NODE, "capacity": NODE}}, "application/merge-patch+json")
        wait_until("nodes are ready", self._nodes_ready, 30)
        wait_until("the default service account is there", lambda: self.call("GET", "/api/v1/namespaces/default/serviceaccounts/default"), 30)
        return self

    def stop(self):
        for p in reversed(list(self.processes.values())):
            p.kill()
        if self.owned:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def restart_server(self):
        """The API server ends in an orderly way and is started again."""
        self.server.stop()
        self.server.start()
        wait_until("the API server serves again", self._ready, 60)

    def _log_file(self):
        path = self.folder / "container.log"
        path.write_text("".join(f"2026-01-01T00:00:{i:02d}.000000000Z stdout F line {i} of a fake container\n" for i in range(LOG_LINES)))
        return path

    def _ready(self):
        self.server.check()
        return self.call("GET", "/readyz", raw=True) == "ok"

    def _nodes_ready(self):
        items = self.call("GET", "/api/v1/nodes")["items"]
        return len(items) == self.nodes and all(any(c["type"] == "Ready" and c["status"] == "True" for c in n.get("status", {}).get("conditions", [])) and
                                                n["status"].get("allocatable", {}).get("ephemeral-storage") == NODE["ephemeral-storage"] and
                                                not n["spec"].get("taints") for n in items)

    # ---- access ----
    def write_kubeconfig(self, file, cert=None, key=None, token=None, server=None, tls_name=None):
        user = {"token": token} if token else {"client-certificate-data": _file64(cert), "client-key-data": _file64(key)}
        cluster = {"server": server or self.url, "certificate-authority-data": _file64(self.authority.cert)}
        if tls_name:
            cluster["tls-server-name"] = tls_name
        path = self.folder / file
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "it", "clusters": [{"name": "it", "cluster": cluster}],
                                    "users": [{"name": "it", "user": user}], "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}]}))
        path.chmod(0o600)
        return path

    def call(self, method, path, body=None, content_type="application/json", raw=False, token=None):
        """One request as the administrator, or with a token as its owner. Raises Refused for a status from 400 on."""
        context = self._context if token is None else ssl.create_default_context(cafile=self.authority.cert)
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=30)
        headers = {"Content-Type": content_type, "Accept": "application/json"}
        if token:
            headers["Authorization"] = "Bearer " + token
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
        finally:
            connection.close()
        if raw and answer.status < 400:
            return text
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        if answer.status >= 400:
            raise Refused(answer.status, value)
        return value

    def get(self, path):
        """An object, or None where there is none."""
        try:
            return self.call("GET", path)
        except Refused as e:
            if e.status == 404:
                return None
            raise

    def apply(self, path, body, manager="test", force=True):
        return self.call("PATCH", f"{path}?fieldManager={manager}&force={str(force).lower()}", body, "application/apply-patch+yaml")

    def token_of(self, namespace, account, seconds=3600):
        """A token of a ServiceAccount, as the kubelet would ask for it."""
        made = self.call("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token",
                         {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": seconds}})
        return made["status"]["token"]

    def kubectl(self, *arguments, check=True, text_in=None, kubeconfig=None):
        """The finished process of kubectl."""
        done = subprocess.run([str(parts.program("kubectl")), "--kubeconfig", str(kubeconfig or self.kubeconfig), *map(str, arguments)],
                              capture_output=True, text=True, input=text_in)
        if check and done.returncode:
            raise AssertionError(f"kubectl {' '.join(map(str, arguments))}: {done.stderr[-2000:]}")
        return done


def _file64(path):
    return base64.b64encode(pathlib.Path(path).read_bytes()).decode()


if __name__ == "__main__":  # one plane until it is interrupted; prints what a client needs
    import signal
    with Plane("plane") as p:
        print(json.dumps({"KUBECONFIG": str(p.kubeconfig), "ETCD": p.etcd_url, "folder": str(p.folder)}), flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
