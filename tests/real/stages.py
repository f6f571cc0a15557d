"""What the fake kubelet does with pods: runs them, or fails them as an annotation or the image's name says.

The annotation `sim.kubeopera.io/fail` takes the words that the in-process simulator knows (none, image-pull, crash, oom, readiness,
slow, config); without it the last part of the image's name decides (crash, oom, unready, slow, a tag `missing`, a host under
`.invalid`). `sim.kubeopera.io/ready-after` (a duration such as 3s) delays a pod that becomes ready in the end.
"""
import json
import pathlib

FAULT = ('(.metadata.annotations["sim.kubeopera.io/fail"] // ([.spec.containers[].image | '
         'if test("^[^/]*[.]invalid[/:]") or test(":missing$") then "image-pull" '
         'elif test("(^|/)crash(-[^/]*)?(:|@|$)") then "crash" elif test("(^|/)oom(-[^/]*)?(:|@|$)") then "oom" '
         'elif test("(^|/)unready(-[^/]*)?(:|@|$)") then "readiness" elif test("(^|/)slow(-[^/]*)?(:|@|$)") then "slow" '
         'else "none" end] | map(select(. != "none")) | first // "none"))')
LIVING = {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"}
RESTARTS = ".status.containerStatuses[0].restartCount"


def _conditions(ready, reason="", message=""):
    why = f"\n  reason: {reason}\n  message: {message}" if reason else ""
    out = []
    for kind, true in (("PodReadyToStartContainers", True), ("Initialized", True), ("Ready", ready), ("ContainersReady", ready)):
        out.append(f'- lastTransitionTime: {{{{ $now | Quote }}}}\n  type: {kind}\n  status: "{true}"' + ("" if true else why))
    return "conditions:\n" + "\n".join(out) + "\n"


# A strategic merge would add to lists that are there: addresses are written once.
_ADDRESSES = """
{{ if not .status.podIP }}
{{ with NodeIPsWith .spec.nodeName }}
hostIP: {{ index . 0 | Quote }}
hostIPs:
{{ range . }}
- ip: {{ . | Quote }}
{{ end }}
{{ end }}
{{ with PodIPsWith .spec.nodeName ( or .spec.hostNetwork false ) ( or .metadata.uid "" ) ( or .metadata.name "" ) ( or .metadata.namespace "" ) }}
podIP: {{ index . 0 | Quote }}
podIPs:
{{ range . }}
- ip: {{ . | Quote }}
{{ end }}
{{ end }}
startTime: {{ $now | Quote }}
{{ end }}
"""


def _containers(state, ready, restarts="0", last=""):
    def block(text, indent):
        return "".join(" " * indent + line + "\n" for line in text.strip().splitlines())
    return ("containerStatuses:\n{{ range .spec.containers }}\n- image: {{ .image | Quote }}\n  imageID: {{ .image | Quote }}\n"
            "  name: {{ .name | Quote }}\n" f"  ready: {str(ready).lower()}\n  started: {str(ready).lower()}\n  restartCount: {restarts}\n"
            "  state:\n" + block(state, 4) + ("  lastState:\n" + block(last, 4) if last else "") + "{{ end }}\n")


def _status(phase, conditions, containers):
    return ("{{ $now := Now }}\n{{ $root := . }}\n{{ $restarts := 1 }}\n"
            "{{ with .status.containerStatuses }}{{ $restarts = add1 ( index . 0 ).restartCount }}{{ end }}\n"
            + conditions + containers + _ADDRESSES + f"phase: {phase}\n")


RUNNING = "running:\n  startedAt: {{ $now | Quote }}"
NOT_READY = ("ContainersNotReady", '"containers with unready status"')


def _waiting(reason, message):
    return f"waiting:\n  reason: {reason}\n  message: {json.dumps(message)}"


def _terminated(reason, code):
    return f"terminated:\n  reason: {reason}\n  exitCode: {code}\n  startedAt: {{{{ $now | Quote }}}}\n  finishedAt: {{{{ $now | Quote }}}}"


def _stage(name, when, status=None, delay=None, kind="Pod", delete=False, events=None):
    doc = {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage", "metadata": {"name": name},
           "spec": {"resourceRef": {"apiGroup": "v1", "kind": kind}, "selector": {"matchExpressions": when}, "next": {}}}
    if status:
        doc["spec"]["next"]["statusTemplate"] = status
    if delete:
        doc["spec"]["next"]["delete"] = True
    if events:
        doc["spec"]["next"]["event"] = events
    if delay:
        doc["spec"]["delay"] = delay
    return doc


def _fault(*words):
    return {"key": FAULT, "operator": "In", "values": list(words)}


def _new(*words):
    """A bound pod with one of these faults that nothing was done with yet."""
    return [LIVING, _fault(*words), {"key": ".status.phase", "operator": "In", "values": ["Pending"]},
            {"key": ".status.podIP", "operator": "DoesNotExist"}]


def _failing(word, reason, code):
    """Starts, ends, and is started again after a pause, as often as anyone looks."""
    last, crash = _terminated(reason, code), {"key": ".status.containerStatuses[0].state.waiting.reason", "operator": "In", "values": ["CrashLoopBackOff"]}
    back_off = _waiting("CrashLoopBackOff", "back-off 10s restarting failed container")
    status = _status("Running", _conditions(False, *NOT_READY), _containers(back_off, False, "{{ $restarts }}", last))
    return [_stage(f"pod-{word}", _new(word), status, events={"type": "Warning", "reason": "BackOff", "message": "Back-off restarting failed container"}),
            _stage(f"pod-{word}-again", [LIVING, _fault(word), crash], status, {"durationMilliseconds": 4000})]


def _stuck(word, first, then, message):
    one = _status("Pending", _conditions(False, *NOT_READY), _containers(_waiting(first, message), False))
    out = [_stage(f"pod-{word}", _new(word), one, events={"type": "Warning", "reason": "Failed", "message": message})]
    if then != first:
        two = _status("Pending", _conditions(False, *NOT_READY), _containers(_waiting(then, message), False))
        out.append(_stage(f"pod-{word}-waits", [LIVING, _fault(word), {"key": ".status.containerStatuses[0].state.waiting.reason", "operator": "In", "values": [first]}],
                          two, {"durationMilliseconds": 500}))
    return out


def stages():
    ready = _status("Running", _conditions(True), _containers(RUNNING, True))
    unready = _status("Running", _conditions(False, *NOT_READY), _containers(RUNNING, False))
    becomes = [LIVING, {"key": ".status.phase", "operator": "In", "values": ["Running"]},
               {"key": '.status.conditions.[] | select( .type == "Ready" ) | .status', "operator": "NotIn", "values": ["True"]}]
    after = {"key": '.metadata.annotations["sim.kubeopera.io/ready-after"]', "operator": "Exists"}
    done = _status("Succeeded", _conditions(False, "PodCompleted", '""'), _containers(_terminated("Completed", 0), False))
    of_job = {"key": ".metadata.ownerReferences.[].kind", "operator": "In", "values": ["Job"]}
    out = [
        _stage("pod-runs", _new("none") + [{**after, "operator": "DoesNotExist"}], ready),
        _stage("pod-starts", _new("none") + [after], unready),
        _stage("pod-becomes-ready", becomes + [_fault("none"), after], ready,
               {"durationMilliseconds": 1000, "durationFrom": {"expressionFrom": '.metadata.annotations["sim.kubeopera.io/ready-after"]'}}),
        _stage("pod-is-not-ready", _new("readiness", "slow"), unready,
               events={"type": "Warning", "reason": "Unhealthy", "message": "Readiness probe failed: HTTP probe failed with statuscode: 503"}),
        _stage("pod-is-slow", becomes + [_fault("slow")], ready, {"durationMilliseconds": 8000}),
        _stage("pod-completes", [LIVING, _fault("none"), of_job, {"key": ".status.phase", "operator": "In", "values": ["Running"]}], done,
               {"durationMilliseconds": 300}),
        _stage("pod-ends", [{"key": ".metadata.deletionTimestamp", "operator": "Exists"}], delete=True),
    ]
    out += _failing("crash", "Error", 1) + _failing("oom", "OOMKilled", 137)
    out += _stuck("image-pull", "ErrImagePull", "ImagePullBackOff", "failed to pull and unpack image: not found")
    out += _stuck("config", "CreateContainerConfigError", "CreateContainerConfigError", 'secret "missing" not found')
    return out


def logs(path):
    """Every container's log is this file, in the container runtime's own form."""
    return {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "ClusterLogs", "metadata": {"name": "logs"}, "spec": {"logs": [{"logsFile": str(path)}]}}


def write(target, kwok_sources, log_file):
    """The fake kubelet's configuration: its own node stages, our pod stages, logs."""
    parts = []
    for f in ("node/fast/node-initialize.yaml", "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml"):
        parts.append((pathlib.Path(kwok_sources) / "kustomize/stage" / f).read_text())
    parts += [json.dumps(s) for s in stages()]
    parts.append(json.dumps(logs(log_file)))
    pathlib.Path(target).write_text("\n---\n".join(parts))
