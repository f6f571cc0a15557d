"""Judges a text in Prometheus' exposition format 0.0.4 by the rules of the format and by those that `promtool check metrics` applies."""
import re

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*\Z")
SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)\Z")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|\Z)')
FORBIDDEN_UNITS = ("milliseconds", "ms", "minutes", "hours", "days", "kilobytes", "megabytes", "kb", "mb", "percent")
TYPE_WORDS = ("gauge", "counter", "histogram", "summary", "untyped")


class Family:
    def __init__(self):
        self.type, self.help, self.samples = None, None, []  # samples: (name, {label: value}, number)


def base_of(name, families):
    for suffix in ("_bucket", "_sum", "_count"):
        base = name.removesuffix(suffix)
        if base != name and base in families and families[base].type == "histogram":
            return base
    return name


def read_labels(text, faults, line):
    labels, at = {}, 0
    while at < len(text):
        m = LABEL.match(text, at)
        if not m:
            faults.append(f"labels cannot be read: {line}")
            return labels
        if m[1] in labels:
            faults.append(f"label {m[1]} is there twice: {line}")
        labels[m[1]] = m[2].replace('\\"', '"').replace("\\n", "\n").replace("\\\\", "\\")
        at = m.end()
    return labels


def read(text):
    """The families by name, and what is wrong."""
    families, faults, seen, last, closed = {}, [], set(), None, set()
    if not text.endswith("\n"):
        faults.append("the text does not end with a line feed")
    for line in text.splitlines():
        if line.startswith(("# HELP ", "# TYPE ")):
            word, name, rest = line[2:].split(" ", 2)
            family = families.setdefault(name, Family())
            if family.samples:
                faults.append(f"{word} of {name} comes after its samples")
            if getattr(family, word.lower()) is not None:
                faults.append(f"{word} of {name} is there twice")
            setattr(family, word.lower(), rest)
            continue
        m = SAMPLE.match(line)
        if not m:
            faults.append(f"not a sample: {line}")
            continue
        name = base_of(m[1], families)
        if name != last:
            if name in closed:
                faults.append(f"the samples of {name} are not together")
            closed.add(last)
            last = name
        labels = read_labels(m[2] or "", faults, line)
        key = (m[1], tuple(sorted(labels.items())))
        if key in seen:
            faults.append(f"there twice: {line}")
        seen.add(key)
        try:
            number = float(m[3])
        except ValueError:
            faults.append(f"not a number: {line}")
            continue
        families.setdefault(name, Family()).samples.append((m[1], labels, number))
    return families, faults


def judge_histogram(name, family):
    faults, series = [], {}
    for sample, labels, number in family.samples:
        rest = tuple(sorted((k, v) for k, v in labels.items() if k != "le"))
        entry = series.setdefault(rest, {"buckets": []})
        if sample.endswith("_bucket"):
            entry["buckets"].append((float(labels.get("le", "nan").replace("+Inf", "inf")), number))
        else:
            entry[sample.rsplit("_", 1)[1]] = number
    for rest, entry in series.items():
        counts = [n for _, n in entry["buckets"]]
        if sorted(entry["buckets"]) != entry["buckets"] or sorted(counts) != counts:
            faults.append(f"{name}{rest}: buckets are not cumulative")
        if not entry["buckets"] or entry["buckets"][-1] != (float("inf"), entry.get("count")) or "sum" not in entry:
            faults.append(f"{name}{rest}: +Inf, _count and _sum do not agree")
    return faults


def judge(text):
    """Everything that is wrong, as sentences."""
    families, faults = read(text)
    for name, f in families.items():
        words = name.split("_")
        if not NAME.match(name) or name != name.lower() or ":" in name:
            faults.append(f"{name}: not a snake_case name")
        if not f.type or f.type not in ("counter", "gauge", "histogram"):
            faults.append(f"{name}: no type")
        if not f.help:
            faults.append(f"{name}: no help text")
        if not f.samples:
            faults.append(f"{name}: no sample")
        if (f.type == "counter") != name.endswith("_total"):
            faults.append(f"{name}: counters, and only they, end in _total")
        if f.type != "histogram" and name.endswith(("_count", "_sum", "_bucket")):
            faults.append(f"{name}: that suffix is a histogram's")
        if any(w in FORBIDDEN_UNITS for w in words):
            faults.append(f"{name}: not a base unit")
        if any(w in TYPE_WORDS for w in words):
            faults.append(f"{name}: the type is not part of the name")
        if f.type == "histogram":
            faults += judge_histogram(name, f)
        elif f.type == "counter" and any(n < 0 for _, _, n in f.samples):
            faults.append(f"{name}: a counter is negative")
    return faults
