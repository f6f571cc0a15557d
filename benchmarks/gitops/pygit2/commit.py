"""pygit2 on its best path: tree builders from the last commit's tree, loose objects, no worktree and no index.

Reads commits from standard input and answers each with its tree and the nanoseconds that it took (../piped_bench.cpp).
"""
import sys
import time

import pygit2


def nested(paths: dict[str, pygit2.Oid]) -> dict:
    """Blob ids by path as nested dictionaries."""
    top: dict = {}
    for path, blob in paths.items():
        *folders, name = path.split("/")
        at = top
        for folder in folders:
            at = at.setdefault(folder, {})
        at[name] = blob
    return top


def write_tree(repository, base, edits: dict) -> pygit2.Oid:
    builder = repository.TreeBuilder(base) if base is not None else repository.TreeBuilder()
    for name, what in edits.items():
        if isinstance(what, dict):
            known = builder.get(name)
            below = repository[known.id] if known is not None else None
            builder.insert(name, write_tree(repository, below, what), pygit2.GIT_FILEMODE_TREE)
        else:
            builder.insert(name, what, pygit2.GIT_FILEMODE_BLOB)
    return builder.write()


def main() -> None:
    repository = pygit2.Repository(sys.argv[1])
    tip = repository.references["refs/heads/main"].target
    source = sys.stdin.buffer
    while head := source.readline():
        when, message_size, count = (int(word) for word in head.split())
        message = source.read(message_size).decode()
        files = {}
        for _ in range(count):
            size, path = source.readline().decode().rstrip("\n").split(" ", 1)
            files[path] = source.read(int(size))
        begin = time.perf_counter_ns()
        blobs = {path: repository.create_blob(content) for path, content in files.items()}
        tree = write_tree(repository, repository[tip].tree, nested(blobs))
        who = pygit2.Signature("bench", "bench@localhost", when, 0)
        tip = repository.create_commit(None, who, who, message, tree, [tip])
        spent = time.perf_counter_ns() - begin
        print(tree, spent, flush=True)


if __name__ == "__main__":
    main()
