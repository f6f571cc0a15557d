"""Bodies and tokens that must be refused: JSON that two readers read differently, fields that lead elsewhere, JWTs of all kinds."""
import base64
import json
import time

SPEC = {"name": "target", "image": "ghcr.io/acme/web:1.0", "port": 8080, "stopped": True, "args": ["-v"],
        "env": [{"name": "A", "value": "1"}, {"name": "S", "secret_ref": {"name": "s", "key": "k"}}],
        "resources": {"limits": {"cpu": "1", "memory": "256Mi"}}, "labels": {"team": "x"}}
DIGEST = "sha256:" + "a" * 64


def documents(text: str):
    """Rows: name, body, reason, pointer. Each is text, which is accepted, with one thing changed."""
    def put(old, new):
        assert text.count(old) == 1, old
        return text.replace(old, new).encode()

    replicas = lambda number: put('"port": 8080', f'"port": 8080, "replicas": {number}')
    raw = lambda data: text.encode().replace(b'"-v"', b'"-v' + data + b'"')
    malformed = "MalformedJson"
    rows = [
        ("duplicate key", put('"port": 8080', '"port": 1, "port": 8080'), "DuplicateKey", "/port"),
        ("duplicate key below", put('"cpu": "1"', '"cpu": "9", "cpu": "1"'), "DuplicateKey", "/resources/limits/cpu"),
        ("duplicate key in a list", put('"name": "A"', '"name": "B", "name": "A"'), "DuplicateKey", "/env/0/name"),
        ("duplicate key in a map", put('"team": "x"', '"team": "y", "team": "x"'), "DuplicateKey", "/labels/team"),
        ("duplicate key by escape", put('"port": 8080', '"p\\u006frt": 1, "port": 8080'), "DuplicateKey", "/port"),
        ("another case", put('"port"', '"Port": 1, "port"'), "InvalidBody", "/Port"),
        ("long s", put('"args"', '"arg\u017f": ["-x"], "args"'), "InvalidBody", "/arg\u017f"),
        ("kelvin sign", put('"key": "k"', '"\u212aey": "x", "key": "k"'), "InvalidBody", "/env/1/secret_ref/\u212aey"),
        ("unknown field", put('"port"', '"host_network": true, "port"'), "InvalidBody", "/host_network"),
        ("unknown field below", put('"cpu": "1"', '"cpu": "1", "nvidia.com/gpu": "8"'), "InvalidBody", "/resources/limits/nvidia.com~1gpu"),
        ("unknown field in a list", put('"name": "A"', '"name": "A", "value_from": {}'), "InvalidBody", "/env/0/value_from"),
        ("prototype", put('"port"', '"__proto__": {"stopped": false}, "port"'), "InvalidBody", "/__proto__"),
        ("merge key", put('"port"', '"<<": {"stopped": false}, "port"'), "InvalidBody", "/<<"),
        ("empty key", put('"port"', '"": 1, "port"'), "InvalidBody", "/"),
        ("65 levels", put('"port"', '"a": ' + "[" * 64 + "]" * 64 + ', "port"'), "TooDeep", None),
        ("200,000 brackets", b"[" * 200_000, "TooDeep", None),
        ("100,000 objects", b'{"a":' * 100_000, "TooDeep", None),
        ("half a million values", put('"-v"', "0," * 500_000 + '"-v"'), "TooManyNodes", None),
        ("nul by escape", put('"-v"', '"-v\\u0000"'), "InvalidBody", "/args/0"),
        ("nul in a key", put('"team"', '"te\\u0000am"'), "InvalidBody", "/labels"),
        ("nul as it is", raw(b"\0"), malformed, None),
        ("line break as it is", raw(b"\n"), malformed, None),
        ("invalid utf-8", raw(b"\xff"), malformed, None),
        ("overlong", raw(b"\xc0\xaf"), malformed, None),
        ("overlong nul", raw(b"\xc0\x80"), malformed, None),
        ("surrogate as bytes", raw(b"\xed\xa0\x80"), malformed, None),
        ("beyond unicode", raw(b"\xf4\x90\x80\x80"), malformed, None),
        ("cut character", raw(b"\xe2\x82"), malformed, None),
        ("lone high surrogate", put('"-v"', '"-v\\ud800"'), malformed, None),
        ("lone low surrogate", put('"-v"', '"-v\\udc00"'), malformed, None),
        ("two high surrogates", put('"-v"', '"-v\\ud800\\ud800"'), malformed, None),
        ("byte order mark", b"\xef\xbb\xbf" + text.encode(), malformed, None),
        ("utf-16", text.encode("utf-16"), malformed, None),
        ("utf-32", text.encode("utf-32-le"), malformed, None),
        ("1e400", replicas("1e400"), "NumberOutOfRange", None),
        ("2^64", replicas(2**64), "NumberOutOfRange", None),
        ("-2^64", replicas(-2**64), "NumberOutOfRange", None),
        ("2^63", replicas(2**63), "InvalidBody", "/replicas"),
        ("2^32 + 1", replicas(2**32 + 1), "InvalidBody", "/replicas"),
        ("float for an integer", replicas("1.0"), "InvalidBody", "/replicas"),
        ("exponent for an integer", replicas("1e0"), "InvalidBody", "/replicas"),
        ("text for an integer", replicas('"1"'), "InvalidBody", "/replicas"),
        ("true for an integer", replicas("true"), "InvalidBody", "/replicas"),
        ("null for an integer", replicas("null"), "InvalidBody", "/replicas"),
        ("integer for a boolean", put('"stopped": true', '"stopped": 1'), "InvalidBody", "/stopped"),
        ("text for a boolean", put('"stopped": true', '"stopped": "true"'), "InvalidBody", "/stopped"),
        ("object for a list", put('["-v"]', '{"0": "-v"}'), "InvalidBody", "/args"),
        ("list for an object", put('{"team": "x"}', '["team"]'), "InvalidBody", "/labels"),
        ("leading zero", replicas("01"), malformed, None),
        ("plus", replicas("+1"), malformed, None),
        ("hexadecimal", replicas("0x1"), malformed, None),
        ("not a number", replicas("NaN"), malformed, None),
        ("infinity", replicas("Infinity"), malformed, None),
        ("no digit before the dot", replicas(".5"), malformed, None),
        ("comma at the end", text[:-1].encode() + b",}", malformed, None),
        ("comment", b"/* x */" + text.encode(), malformed, None),
        ("single quotes", text.replace('"', "'").encode(), malformed, None),
        ("second document", text.encode() + b"{}", malformed, None),
        ("text behind", text.encode() + b" x", malformed, None),
        ("nul behind", text.encode() + b"\0", malformed, None),
        ("cut", text[:-1].encode(), malformed, None),
        ("nothing", b" ", malformed, None),
        ("list of it", b"[" + text.encode() + b"]", "InvalidBody", ""),
        ("string of it", json.dumps(text).encode(), "InvalidBody", ""),
        ("null", b"null", "InvalidBody", ""),
        ("yaml", b"name: target\nport: 8080\n", malformed, None),
    ]
    return rows


# What a body is said to be: headers, status, reason. The accepted twins have status 200.
MEDIA = [
    ([b"Content-Type: application/json; charset=utf-8"], 200, ""),
    ([b"Content-Type: APPLICATION/JSON;Charset=\"UTF-8\""], 200, ""),
    ([b"Content-Type: application/json", b"Content-Encoding: identity"], 200, ""),
    ([], 415, "UnsupportedMediaType"),
    ([b"Content-Type:"], 415, "UnsupportedMediaType"),
    ([b"Content-Type: text/plain"], 415, "UnsupportedMediaType"),
    ([b"Content-Type: text/json"], 415, "UnsupportedMediaType"),
    ([b"Content-Type: application/jsonx"], 415, "UnsupportedMediaType"),
    ([b"Content-Type: application/json, text/plain"], 415, "UnsupportedMediaType"),
    ([b"Content-Type: application/x-www-form-urlencoded"], 415, "UnsupportedMediaType"),
    ([b"Content-Type: multipart/form-data; boundary=a"], 415, "UnsupportedMediaType"),
    ([b"Content-Type: application/yaml"], 415, "UnsupportedMediaType"),
    ([b"Content-Type: application/json; charset=utf-16"], 415, "UnsupportedMediaType"),
    ([b"Content-Type: application/json; charset=utf-7"], 415, "UnsupportedMediaType"),
    ([b"Content-Type: application/json", b"Content-Encoding: gzip"], 415, "UnsupportedMediaType"),
    ([b"Content-Type: application/json", b"Content-Type: application/json"], 400, "DuplicateHeader"),
    ([b"Content-Type: application/json", b"If-Match: \"1\"", b"If-Match: \"2\""], 400, "DuplicateHeader"),
    ([b"Content-Type: application/json", b"Content-Encoding: identity", b"Content-Encoding: gzip"], 400, "DuplicateHeader"),
]

LONG_LABEL, LONG_NAME = "a" * 64 + ".example", ".".join(["a" * 60] * 4 + ["example.com"])
git = lambda **more: {"repository": "https://github.com/a/b", **more}
env = lambda name: [{"name": name, "value": "1"}]
reference = lambda **more: [{"name": "A", "secret_ref": {"name": "s", "key": "k", **more}}]
probe = lambda path: {"readiness": {"http": {"path": path}}}

# Rows: field, pointer, values that are refused, one that is not.
FIELDS = [
    ("domain", "/domain", [
        "ex\u00e4mple.com", "\uff41.example", "shop\u3002example", "shop.example.", ".shop.example", "*.example.com", "a.*.com", "1.2.3.4",
        "127.1", "127.0.0.0x1", "0x7f000001.0x0", "2130706433", "[::1]", "::1", "::ffff:1.2.3.4", "a..example", "-a.example", "a-.example",
        "a_b.example", "Shop.example", "shop.example:443", "https://shop.example", "shop.example/x", "user@shop.example", "shop.example?x",
        "localhost", "a b.example", "a\tb.example", "a\r\nb.example", LONG_LABEL, LONG_NAME, "kubernetes.default.svc", "x.svc.cluster.local",
        "a.localhost", "a.localdomain", "apps.kubeopera.localhost", "x.apps.kubeopera.localhost", "{{x}}.example", "$(id).example", ""],
     "xn--exmple-cua.example"),
    ("image", "/image", ["a b", "Image", "a:", "a:t t", "a@sha256:12", "a@md5:" + "a" * 32, "../x", "/x", "a//b", "http://a/b", "-rf", "a;b",
                         "a\nb", "{{x}}", "$(id)", "a/../b", "reg.io:99999/a", "reg.io:0/a", "[::1]:5000/a", "user:pass@reg.io/a", "a:" + "t" * 129,
                         "a@" + DIGEST + "@" + DIGEST, "\u0430pple/web"], "reg.io:5000/team/web:1@" + DIGEST),
    ("env", "/env/0/name", [env(n) for n in ("1A", "A-B", "A=B", "A B", "A.B", "", "A\n", "\u00c4", "KUBERNETES_SERVICE_HOST", "KUBEOPERA_X",
                                             "A" * 129)], env("A_1")),
    ("env", "/env/1/name", [env("A") + env("A")], env("A") + env("a")),
    ("env", "/env/0", [[{"name": "A"}], [{"name": "A", "value": "1", "secret": "2"}]], env("A")),
    ("env", "/env/0/value", [[{"name": "A", "value": "x" * 32769}]], [{"name": "A", "value": "x" * 32768}]),
    ("env", "/env/0/secret_ref/name", [reference(name=n) for n in ("../x", "a/b", "A", "a_b", "", "a" * 254)], reference(name="a.b-c")),
    ("env", "/env/0/secret_ref/key", [reference(key=k) for k in ("..", "../k", "a/b", ".", "", "k" * 254)], reference(key=".k_K-1")),
    ("source", "/source/repository", [git(repository=r) for r in (
        "http://github.com/a/b", "file:///etc/passwd", "ext::sh -c id", "git://github.com/a/b", "ssh://git@github.com/a/b", "git@github.com:a/b",
        "https://user:pass@github.com/a/b", "https://github.com", "https://github.com/", "https://github.com/a?b", "https://github.com/a#b",
        "https://127.0.0.1/a", "https://169.254.169.254/a", "https://[::1]/a", "https://0x7f.0x1/a", "https://2130706433/a", "https://localhost/a",
        "https://github.com/a/../b", "https://github.com/a//b", "https://github.com/%2e%2e/b", "https://github.com:0/a", "https://github.com:65536/a",
        "-u https://github.com/a/b", "https://github.com/a b", "/srv/git/a", "")], git()),
    ("source", "/source/revision", [git(revision=r) for r in ("-x", "--upload-pack=id", "a..b", "a.lock", "/a", "a/", "a//b", "a b", "HEAD~1", "a^",
                                                              "a:b", "@{u}", ".a", "a/.b", "a.", "", "a\n")], git(revision="release/1.2")),
    ("source", "/source/dockerfile", [git(dockerfile=p) for p in ("/etc/passwd", "../x", "a/../b", "./x", "a//b", "-f", "a\\b", "a b", "a\n", "")],
     git(dockerfile="deploy/Dockerfile.prod")),
    ("source", "/source/context", [git(context=p) for p in ("/", "..", "a/..", "~/a", "-x")], git(context=".")),
    ("labels", "/labels/app.kubernetes.io~1name", [{"app.kubernetes.io/name": "x"}], {"name": "x"}),
    ("labels", "/labels/kubeopera.io~1app-id", [{"kubeopera.io/app-id": "x"}], {"app-id": "x"}),
    ("labels", "/labels/pod-template-hash", [{"pod-template-hash": "x"}], {"hash": "x"}),
    ("labels", "/labels/team", [{"team": v} for v in ("a b", "a,b", "a=b", "-a", "a-", "a" * 64, "\u00e4", "a\n")], {"team": "a" * 63}),
    ("labels", "/labels/", [{"": "x"}], {"a": ""}),
    ("name", "/name", ["other", "Target", "../target", "target/x", "kube-system", "target-", ""], "target"),
    ("port", "/port", [0, 65536, -1], 65535),
    ("ports", "/ports/0/port", [[{"name": "a", "port": p}] for p in (0, 65536, 8080, 80)], [{"name": "a", "port": 81}]),
    ("ports", "/ports/0/name", [[{"name": n, "port": 81}] for n in ("http", "A", "a_b", "123", "a" * 16, "-a", "a--b", "")], [{"name": "grpc", "port": 81}]),
    ("ports", "/ports/0/protocol", [[{"name": "a", "port": 81, "protocol": p}] for p in ("SCTP", "tcp", "")], [{"name": "a", "port": 81, "protocol": "UDP"}]),
    ("replicas", "/replicas", [-1, 201], 200),
    ("resources", "/resources/limits/cpu", [{"limits": {"cpu": q}} for q in (
        "1E30", "-1", "0", "0.1n", "9223372036854775808", "1e400", "1e-400", "Inf", "NaN", "1 ", " 1", "1,5", "1Q", "1mi", "0x1", "1_0", "65",
        "1" * 40, "1.1.1", ".", "m", "", "\u0661")], {"limits": {"cpu": "6.4e1"}}),
    ("resources", "/resources/limits/memory", [{"limits": {"memory": q}} for q in ("128m", "1Ti", "1", "4095Ki", "513Gi", "1e30")],
     {"limits": {"memory": "512Gi"}}),
    ("resources", "/resources/limits/memory", [{"requests": {"memory": "1Gi"}, "limits": {"memory": "1G"}}],
     {"requests": {"memory": "1G"}, "limits": {"memory": "1Gi"}}),
    ("health", "/health/readiness/http/path", [probe(p) for p in ("", "x", "http://10.0.0.1/", "/a b", "/a\r\nHost: b", "/a#b", "/\u00e4", "/" + "a" * 1024)],
     probe("/healthz?full=1")),
    ("health", "/health/readiness/http/host", [{"readiness": {"http": {"host": "169.254.169.254"}}}], {"readiness": {"http": {"port": 1}}}),
    ("security", "/security/writable_paths/0", [{"writable_paths": [p]} for p in ("/", "a", "/a/", "/a/../b", "/./a", "//a", "/proc/x", "/sys", "/dev/shm",
                                                                                  "/etc", "/tmp/x", "/var/run/secrets/x", "/a b", "/a\n", "")],
     {"writable_paths": ["/var/cache/web"]}),
    ("security", "/security/run_as_user", [{"run_as_user": u} for u in (0, -1, 2**31)], {"run_as_user": 2**31 - 1}),
    ("registry_credentials", "/registry_credentials", ["../x", "a/b", "A", ""], "ghcr"),
    ("strategy", "/strategy/max_surge", [{"max_surge": v} for v in ("0", "101%", "-1", "1.5", "25 %", "%", "01", "")], {"max_surge": "100%"}),
    ("termination_grace_seconds", "/termination_grace_seconds", [-1, 3601], 3600),
    ("restarted_at", "/restarted_at", ["now", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00+01:00", "2026-01-01 00:00:00Z", "2026-01-01T25:00:00Z", ""],
     "2026-12-01T00:00:00.5Z"),
    ("command", "/command/0", [["x" * 32769]], ["x" * 32768]),
    ("command", "/command", [["x"] * 65], ["x"] * 64),
    ("args", "/args", [["x"] * 257], ["x"] * 256),
]


# Rows: section, what is put into its entry, pointer.
KUBECONFIGS = [
    ("users", {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "touch", "args": ["{marker}"]}}, "/users/0/user/exec"),
    ("users", {"auth-provider": {"name": "gcp", "config": {"cmd-path": "touch", "cmd-args": "{marker}"}}}, "/users/0/user/auth-provider"),
    ("users", {"tokenFile": "/etc/passwd"}, "/users/0/user/tokenFile"),
    ("users", {"as": "system:admin"}, "/users/0/user/as"),
    ("clusters", {"insecure-skip-tls-verify": True}, "/clusters/0/cluster/insecure-skip-tls-verify"),
    ("clusters", {"proxy-url": "http://evil.example:8080"}, "/clusters/0/cluster/proxy-url"),
    ("clusters", {"certificate-authority": "/etc/passwd"}, "/clusters/0/cluster/certificate-authority"),
    ("clusters", {"server": "https://evil.example:443"}, "/clusters/0/cluster/server"),
    ("clusters", {"server": "https://kubernetes.default.svc"}, "/clusters/0/cluster/server"),
    ("clusters", {"server": "http://localhost:8443"}, "/clusters/0/cluster/server"),
]


def kubeconfigs(marker):
    return [(part, json.loads(json.dumps(fields).replace("{marker}", str(marker))), pointer) for part, fields, pointer in KUBECONFIGS]


def kubeconfig(good: bytes, part, fields) -> bytes:
    """A good kubeconfig with fields put into the one entry of a section."""
    import yaml
    config = yaml.safe_load(good)
    config[part][0][part[:-1]].update(fields)
    return json.dumps(config).encode()


def tokens(sign):
    """Rows: name, Authorization header lines, reason. sign(header, claims) makes a token with the server's own key."""
    now = int(time.time())
    head = {"alg": "HS256", "typ": "JWT"}
    claims = {"iss": "kubeopera", "aud": "kubeopera", "token_use": "access", "sub": "tester", "tenant_id": "hostile", "iat": now, "exp": now + 600,
              "permissions": ["apps:read"]}
    good = sign(head, claims)
    header, payload, signature = good.split(".")
    text = json.dumps(claims)
    b64 = lambda data: base64.urlsafe_b64encode(data).rstrip(b"=").decode()
    made = [("header " + json.dumps(h), sign(h, claims), "TokenAlgorithm") for h in (
        {"alg": "none"}, {"alg": "None"}, {"alg": "nOnE"}, {"alg": "RS256"}, {"alg": "ES256"}, {"alg": "HS512"}, {"alg": "hs256"}, {"typ": "JWT"}, {},
        {"alg": ["HS256"]}, {"alg": None})]
    made += [("header " + json.dumps(h), sign({**head, **h}, claims), "TokenMalformed") for h in (
        {"crit": ["exp"]}, {"b64": False}, {"jku": "https://evil.example/"}, {"jwk": {}}, {"x5u": "https://evil.example/"}, {"typ": "JWE"},
        {"kid": "k" * 129})]
    made += [("header of " + h, sign(h, claims), "TokenMalformed") for h in ('{"alg":"none","alg":"HS256"}', '{"alg":"HS256","alg":"none"}', '"HS256"', '{"alg":"HS256"}x')]
    made += [(f"claim {k}={v!r}", sign(head, {**claims, k: v}), reason) for k, v, reason in (
        ("exp", None, "TokenClaims"), ("exp", str(now + 600), "TokenClaims"), ("exp", 1e300, "TokenClaims"), ("exp", -1, "TokenClaims"),
        ("exp", now + 600.5, "TokenClaims"), ("exp", 2**63, "TokenClaims"), ("exp", now - 61, "TokenExpired"), ("nbf", now + 120, "TokenNotYetValid"),
        ("iat", now + 120, "TokenNotYetValid"), ("iat", "now", "TokenClaims"), ("iss", "evil", "TokenIssuer"), ("iss", ["kubeopera"], "TokenIssuer"),
        ("aud", "other", "TokenAudience"), ("aud", ["other"], "TokenAudience"), ("aud", ["kubeopera", 1], "TokenAudience"),
        ("token_use", "refresh", "TokenUse"), ("token_use", "id", "TokenUse"), ("sub", "", "TokenClaims"), ("sub", 7, "TokenClaims"),
        ("sub", "a\0b", "TokenClaims"), ("sub", "a\nb", "TokenClaims"), ("sub", "a" * 254, "TokenClaims"), ("tenant_id", ["hostile"], "TokenClaims"),
        ("tenant_id", "a\0b", "TokenClaims"), ("tenant_id", "a b", "TokenClaims"), ("tenant_id", "a" * 64, "TokenClaims"),
        ("platform_admin", 1, "TokenClaims"), ("platform_admin", "true", "TokenClaims"), ("permissions", "apps:read", "TokenClaims"),
        ("permissions", [["apps:read"]], "TokenClaims"), ("roles", {"admin": True}, "TokenClaims"))]
    for name in ("exp", "sub", "iss", "aud", "token_use"):
        reason = {"iss": "TokenIssuer", "aud": "TokenAudience", "token_use": "TokenUse"}.get(name, "TokenClaims")
        made.append((f"no {name}", sign(head, {k: v for k, v in claims.items() if k != name}), reason))
    made += [
        ("tenant twice", sign(head, text[:-1] + ', "tenant_id": "other"}'), "TokenMalformed"),
        ("claims a list", sign(head, "[" + text + "]"), "TokenMalformed"),
        ("claims nested", sign(head, {**claims, "x": [[[[[1]]]]]}), "TokenMalformed"),
        ("signature of another key", sign(head, claims, b"x" * 48), "TokenSignature"),
        ("signature of another token", f"{header}.{b64(text.replace('hostile', 'others').encode())}.{signature}", "TokenSignature"),
        ("signature cut", good[:-2], "TokenMalformed"), ("no signature", f"{header}.{payload}.", "TokenMalformed"),
        ("two parts", f"{header}.{payload}", "TokenMalformed"), ("four parts", good + "." + signature, "TokenMalformed"),
        ("padded", good + "=", "TokenMalformed"), ("trailing bits", good[:-1] + chr(ord(good[-1]) + 1), "TokenMalformed"),
        ("plain base64", f"{header}.{payload}.{signature[:-2]}+/", "TokenMalformed"), ("blank behind", good + " x", "TokenMalformed"),
        ("8 KiB and more", sign(head, {**claims, "name": "n" * 8192}), "TokenTooLarge"), ("many dots", "." * 8000, "TokenMalformed"),
        ("empty", "", None), ("not a token", "null", "TokenMalformed"),
    ]
    rows = [(name, [b"Authorization: Bearer " + token.encode()], reason) for name, token, reason in made]
    bearer = good.encode()
    rows += [
        ("no header", [], "TokenMissing"), ("twice", [b"Authorization: Bearer " + bearer] * 2, "TokenMalformed"),
        ("twice, one empty", [b"Authorization:", b"Authorization: Bearer " + bearer], "TokenMalformed"),
        ("lower-case scheme", [b"Authorization: bearer " + bearer], "TokenMalformed"), ("no scheme", [b"Authorization: " + bearer], "TokenMalformed"),
        ("basic", [b"Authorization: Basic " + base64.b64encode(b"a:" + bearer)], "TokenMalformed"), ("two blanks", [b"Authorization: Bearer  " + bearer], "TokenMalformed"),
        ("tab", [b"Authorization: Bearer\t" + bearer], "TokenMalformed"), ("list", [b"Authorization: Bearer " + bearer + b", Bearer x"], "TokenMalformed"),
        ("alias", [b"Authorization_: Bearer " + bearer], "TokenMissing"), ("another header", [b"X-Authorization: Bearer " + bearer], "TokenMissing"),
        ("cookie", [b"Cookie: token=" + bearer, b"Cookie: Authorization=Bearer " + bearer], "TokenMissing"),
        ("proxy's header", [b"Proxy-Authorization: Bearer " + bearer], "TokenMissing"),
        ("identity headers", [b"X-Tenant-Id: hostile", b"X-User-Id: tester", b"X-Platform-Admin: true", b"X-Permissions: apps:read"], "TokenMissing"),
    ]
    return good, rows
