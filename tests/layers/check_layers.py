#!/usr/bin/env python3
"""Checks that every #include keeps to cmake/layers.txt, and that CMake's DEPS lines say the same.

Also: foreign headers stay in the .cpp files (and private headers) of the module that owns them, and a service includes
nothing of another service but its client.hpp.
"""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parents[2]
OWNED = {"boost/beast": {"http"}, "openssl/": {"http", "crypto"}, "libpq": {"postgres"}, "git2": {"gitops"}, "yaml-cpp": {"yaml"},
         "simdjson": {"kube"}, "rabbitmq": {"events"}, "amqp": {"events"}}
problems = []


def layers() -> dict[str, set[str]]:
    out = {}
    for line in (root / "cmake/layers.txt").read_text().splitlines():
        line = line.split("#")[0].strip()
        if line:
            name, _, deps = line.partition("<")
            out[name.strip()] = set(deps.split())
    return out


def includes(path: pathlib.Path):
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        m = re.match(r'\s*#\s*include\s+[<"]([^>"]+)[>"]', line)
        if m:
            yield number, m.group(1)


def say(path: pathlib.Path, number: int, text: str) -> None:
    problems.append(f"{path.relative_to(root)}:{number}: {text}")


def check_file(path: pathlib.Path, module: str, allowed: set[str], public: bool) -> None:
    for number, header in includes(path):
        m = re.match(r"kubeopera/(\w+)/", header) or re.match(r"src/(\w+)/", header)
        if m and m.group(1) != module and m.group(1) not in allowed:
            say(path, number, f"{module} may not include {header}: cmake/layers.txt")
        if header.startswith("server/"):
            say(path, number, f"the SDK may not include {header}")
        for prefix, owners in OWNED.items():
            if header.startswith(prefix) and (public or module not in owners):
                say(path, number, f"{header} belongs in the .cpp files of {', '.join(sorted(owners))}")


def check_server(known: dict[str, set[str]]) -> None:
    rank = {"web": 0, "services": 1, "embedded": 2, "app": 3, "cli": 3}
    for path in sorted((root / "server").rglob("*.[ch]pp")):
        parts = path.relative_to(root / "server").parts
        part = parts[0]
        for number, header in includes(path):
            for prefix in OWNED:
                if header.startswith(prefix):
                    say(path, number, f"the server may not include {header}")
            if not header.startswith("server/"):
                continue
            other = header.split("/")[1:]
            if part in rank and other[0] in rank and rank[other[0]] > rank[part]:
                say(path, number, f"{part} may not include {header}")
            if part == "services" and other[0] == "services" and other[1] != parts[1] and other[-1] != "client.hpp":
                say(path, number, f"a service may include another's client.hpp only, not {header}")


def check_cmake(known: dict[str, set[str]]) -> None:
    for module, allowed in known.items():
        path = root / "src" / module / "CMakeLists.txt"
        if not path.exists():
            continue
        m = re.search(r"kubeopera_library\(\s*\w+(.*?)\)", path.read_text(), re.S)
        words = m.group(1).split() if m else []
        deps, keep = set(), False
        for w in words:
            if w in ("DEPS", "EXTERNAL", "PUBLIC"):
                keep = w == "DEPS"
            elif keep:
                deps.add(w)
        if not deps <= allowed:
            say(path, 1, f"DEPS {sorted(deps - allowed)} are not in cmake/layers.txt")


def main() -> int:
    known = layers()
    for module, allowed in known.items():
        for base, public in ((root / "include/kubeopera" / module, True), (root / "src" / module, False)):
            for path in sorted(base.rglob("*.[ch]pp")) if base.exists() else []:
                check_file(path, module, allowed, public)
    check_server(known)
    check_cmake(known)
    for p in problems:
        print(p)
    print(f"{len(known)} modules, {len(problems)} offences")
    return 1 if problems else 0


sys.exit(main())
