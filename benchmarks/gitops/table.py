"""Prints the goals' ratios from a benchmark's JSON files: of every row, the best median of all rounds."""
import json
import pathlib
import sys


def read(paths: list[str]) -> dict[str, dict]:
    """Row name to its counters; times in microseconds."""
    best: dict[str, dict] = {}
    for path in paths:
        for row in json.loads(pathlib.Path(path).read_text())["benchmarks"]:
            if row.get("error_occurred") or row["run_type"] != "iteration":
                continue
            name = row["run_name"].split("/iterations:")[0]
            median = row["p50_us"] if "p50_us" in row else row["p50_ms"] * 1e3
            if name not in best or median < best[name]["median"]:
                best[name] = {**row, "median": median}
    return best


def shown(microseconds: float) -> str:
    return f"{microseconds / 1e3:.1f} ms" if microseconds >= 1e4 else f"{microseconds:.0f} us"


def main() -> None:
    rows = read(sys.argv[1:])
    median = {name: row["median"] for name, row in rows.items()}
    lines = []

    def ratio(what: str, goal: str, top: str, bottom: str, by: float = 1.0) -> None:
        if top in median and bottom in median:
            value = median[top] / median[bottom] / by
            lines.append(f"| {what} | {value:.2f} | {goal} | {shown(median[top])} / {shown(median[bottom])} |")

    one, batch = "/50000/5000/1", "/50000/5000/100"
    ratio("one app: ours / hash and deflate alone", "at most 4", "ours" + one, "floor" + one)
    for who, goal in (("libgit2", "at least 8"), ("gogit", "at least 5"), ("pygit2", ""), ("fast_import", "at least 20")):
        ratio(f"one app: {who} / ours", goal, who + one, "ours" + one)
    ratio("one app: ours, 500,000 apps / 5,000 apps", "at most 1.3", "ours/500000/5000/1", "ours/5000/5000/1")
    ratio("the floor, 500,000 apps / 5,000 apps", "", "floor/500000/5000/1", "floor/5000/5000/1")
    for who in ("libgit2", "gogit", "pygit2", "fast_import"):
        ratio(f"one app of 500,000: {who} / ours", "", who + "/500000/5000/1", "ours/500000/5000/1")
    ratio("100 apps: ours / hash and deflate alone", "at most 1.6", "ours" + batch, "floor" + batch)
    for who in ("libgit2", "gogit", "pygit2", "fast_import"):
        ratio(f"100 apps: {who} / ours", "", who + batch, "ours" + batch)
    ratio("100 apps on the disk: libgit2 / ours", "at least 10", "libgit2_synced" + batch, "ours_synced" + batch)
    ratio("one app on the disk: libgit2 / ours", "", "libgit2_synced" + one, "ours_synced" + one)
    ratio("push to a directory: git push / ours (commit and push)", "at least 5", "push_directory/git_push", "push_directory/ours_commit_and_push")
    ratio("push over HTTP: git push / ours (commit and push)", "at least 5", "push_http/git_push", "push_http/ours_commit_and_push")
    ratio("push over HTTP: ours / the server's receive-pack alone", "", "push_http/ours_commit_and_push", "push_http/receive_pack_alone")

    print("| what | ratio | goal | medians, best of the rounds |\n|---|---|---|---|")
    print("\n".join(lines))
    cpu = [rows.get(f"push_http/{who}", {}).get("client_cpu_ms") for who in ("git_push", "ours_commit_and_push")]
    if all(cpu):
        print(f"| push over HTTP, CPU time of the client: git push / ours (commit and push) | {cpu[0] / cpu[1]:.1f} | at least 5 | {cpu[0]:.1f} ms / {cpu[1]:.1f} ms |")
    alone = rows.get("push_http/receive_pack_alone", {})
    if "bytes_to_objects" in alone:
        print(f"| push: bytes sent / the new objects, each deflated by git | {alone['bytes_to_objects']:.2f} | at most 1.1 | {alone['request_bytes']:.0f} bytes |")
    for name in ("ours_synced" + one, "ours_synced" + batch):
        if "syncs" in rows.get(name, {}):
            print(f"| syncs of a commit, {name.rsplit('/', 1)[1]} app(s) | {rows[name]['syncs']:.0f} | at most 3 | |")


if __name__ == "__main__":
    main()
