#!/usr/bin/env python3
"""Builds the real programs of this tier from their pinned sources (parts/*/go.mod and go.sum) and keeps them outside the tree.

    parts.py            builds what is missing and prints where each program is
    parts.py --missing  only says what would have to be built

A program is kept by the hash of its recipe and of the Go that built it, so that a change of a pin builds it anew and nothing else does.
"""
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent / "parts"
K8S = "1.36.3"
_VERSION = "k8s.io/component-base/version"
# part: (package to build, names of its program, linker variables)
PARTS = {
    "kube": (".", ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"],
             f"-X {_VERSION}.gitVersion=v{K8S} -X {_VERSION}.gitMajor=1 -X {_VERSION}.gitMinor={K8S.split('.')[1]}"),
    "etcd": ("go.etcd.io/etcd/server/v3", ["etcd"], ""),
    "kwok": ("sigs.k8s.io/kwok/cmd/kwok", ["kwok"], ""),
    "source-controller": ("github.com/fluxcd/source-controller", ["source-controller"], ""),
    "kustomize-controller": ("github.com/fluxcd/kustomize-controller", ["kustomize-controller"], ""),
    "kube-score": ("github.com/zegl/kube-score/cmd/kube-score", ["kube-score"], ""),
}
CLUSTER = ("kube", "etcd", "kwok")
FLUX = ("source-controller", "kustomize-controller")


class Missing(Exception):
    """The machine cannot build a part; the message says why."""


def cache():
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "kubeopera" / "real"


def go_version():
    go = shutil.which("go")
    if not go:
        raise Missing("Go is not installed (the real parts are built from source; Go 1.26 or later)")
    said = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True).stdout.strip()
    number = tuple(int(n) for n in said.removeprefix("go").split("-")[0].split(".")[:2] if n.isdigit())
    if number < (1, 26):
        raise Missing(f"the installed Go is {said}; the real parts need Go 1.26 or later")
    return said


def folder(part):
    """Where the programs of a part are, or will be."""
    h = hashlib.sha256(go_version().encode())
    for f in sorted((HERE / part).iterdir()):
        h.update(f.name.encode() + b"\0" + f.read_bytes())
    h.update(repr(PARTS[part]).encode())
    return cache() / f"{part}-{h.hexdigest()[:16]}"


def built(part):
    return all((folder(part) / name).exists() for name in PARTS[part][1])


def missing(parts=tuple(PARTS)):
    return [p for p in parts if not built(p)]


def build(part):
    """Builds a part unless it is there; one builder at a time. Raises Missing where it cannot be built."""
    target = folder(part)
    package, names, variables = PARTS[part]
    cache().mkdir(parents=True, exist_ok=True)
    with open(cache() / f"{part}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if built(part):
            return target
        start = time.monotonic()
        print(f"building {part} ...", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(dir=cache()) as work:
            shutil.copytree(HERE / part, work, dirs_exist_ok=True)
            out = pathlib.Path(work) / "out"
            out.mkdir()
            done = subprocess.run(["go", "build", "-trimpath", f"-ldflags=-s -w {variables}", "-o", str(out / names[0]), package], cwd=work,
                                  env={**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false"}, capture_output=True, text=True)
            if done.returncode:
                raise Missing(f"{part} does not build here: {done.stderr.strip()[-600:]}")
            for name in names[1:]:
                os.link(out / names[0], out / name)
            shutil.rmtree(target, ignore_errors=True)
            out.rename(target)
        for old in cache().glob(f"{part}-*"):  # the same part by an older recipe
            if old != target and old.name.removeprefix(part + "-").isalnum() and time.time() - old.stat().st_mtime > 14 * 86400:
                shutil.rmtree(old, ignore_errors=True)
        print(f"built {part} in {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    return target


def program(name):
    """The path of a program, built first if need be."""
    for part, (_, names, _) in PARTS.items():
        if name in names:
            return build(part) / name
    raise KeyError(name)


def module(part, path):
    """The folder of the sources of a Go module among a part's dependencies: CRDs and configurations come from there."""
    go_version()
    done = subprocess.run(["go", "list", "-m", "-f", "{{.Dir}}", path], cwd=HERE / part, capture_output=True, text=True,
                          env={**os.environ, "GOFLAGS": "-mod=readonly"})
    found = done.stdout.strip()
    if done.returncode or not found:
        subprocess.run(["go", "mod", "download", path], cwd=HERE / part, capture_output=True)
        done = subprocess.run(["go", "list", "-m", "-f", "{{.Dir}}", path], cwd=HERE / part, capture_output=True, text=True)
        found = done.stdout.strip()
    if not found:
        raise Missing(f"the sources of {path} are not to be had: {done.stderr.strip()[-300:]}")
    return pathlib.Path(found)


def main():
    try:
        if sys.argv[1:] == ["--missing"]:
            print("\n".join(missing()))
            return 0
        for part in PARTS:
            print(build(part))
    except Missing as why:
        print(f"cannot build the real parts: {why}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
