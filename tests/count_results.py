#!/usr/bin/env python3
"""Adds up what the test programs reported and prints the closing line.

A gtest program leaves results/NAME.json; a plain program is one test, whose outcome ctest knows. A program that ended
without its report (a crash, a time-out) counts as one failure.
"""
import json
import pathlib
import re
import sys


def last_log(testing: pathlib.Path) -> str:
    logs = sorted(testing.glob("Temporary/LastTest.log*"))
    return logs[-1].read_text(errors="replace") if logs else ""


def outcomes(log: str) -> dict[str, bool]:
    """Test name to whether it passed, from ctest's own log."""
    result = {}
    for block in re.split(r"^\d+/\d+ Testing: ", log, flags=re.M)[1:]:
        result[block.split("\n", 1)[0].strip()] = "\nTest Passed." in block
    return result


def main() -> int:
    results, testing = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    passed = failed = skipped = 0
    names = outcomes(last_log(testing))
    for name, ok in sorted(names.items()):
        report = results / f"{name}.json"
        if not report.exists():
            passed, failed = (passed + 1, failed) if ok else (passed, failed + 1)
            if not ok:
                print(f"FAILED {name}")
            continue
        for suite in json.loads(report.read_text()).get("testsuites", []):
            for case in suite.get("testsuite", []):
                if case.get("failures"):
                    failed += 1
                    print(f"FAILED {name}: {case['classname']}.{case['name']}")
                elif case.get("result") == "SKIPPED" or case.get("status") == "NOTRUN":
                    skipped += case.get("result") == "SKIPPED"
                else:
                    passed += 1
        if not ok and not any(c.get("failures") for s in json.loads(report.read_text()).get("testsuites", []) for c in s.get("testsuite", [])):
            failed += 1
            print(f"FAILED {name} (its process)")
    for figures in sorted((results / "figures").glob("*.txt")):
        for line in figures.read_text().splitlines():
            print(f"{figures.stem}: {line}")
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not passed else 0


sys.exit(main())
