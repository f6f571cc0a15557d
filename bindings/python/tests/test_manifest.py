"""The manifest bindings. Runs under pytest and under `python3 -m unittest`."""

import json
import pathlib
import threading
import unittest

import kubeopera

try:
    import yaml
except ImportError:
    yaml = None

ROOT = pathlib.Path(__file__).resolve().parents[3]
APP = {"name": "shop", "image": "ghcr.io/acme/shop:1.4.2", "port": 8080}
CONTEXT = {"app_id": "0190b6f0-0000-7000-8000-000000000001", "revision": 1, "host": "shop-main.apps.example.com"}


class Render(unittest.TestCase):
    def test_files_are_those_of_the_golden_tests(self):
        cases = sorted((ROOT / "tests/golden/manifest").iterdir())
        self.assertTrue(cases)
        for case in cases:
            given = json.loads((case / "input.json").read_text())
            files = kubeopera.render(given["app"], **given["context"])
            self.assertEqual(files, {p.name: p.read_text() for p in case.glob("*.yaml")}, case.name)

    @unittest.skipIf(yaml is None, "python3-yaml is not installed")
    def test_a_yaml_1_1_reader_sees_strings_as_strings(self):
        words = ["y", "no", "on", "0755", "1_000", "12:30", "1e3", "2001-12-14", "~", "", " x", "0x10", ".5", "a: b", "- a", "null", "two\nlines\n", "=", "é", "\u2028"]
        app = dict(APP, env=[{"name": f"V{i}", "value": w} for i, w in enumerate(words)], args=words)
        deployment = yaml.safe_load(kubeopera.render(app, **CONTEXT)["deployment.yaml"])
        container = deployment["spec"]["template"]["spec"]["containers"][0]
        self.assertEqual([e["value"] for e in container["env"]], words)
        self.assertEqual(container["args"], words)

    def test_errors_carry_code_reason_and_violations(self):
        with self.assertRaises(kubeopera.Error) as caught:
            kubeopera.render({"name": "Shop", "image": "x", "port": 0}, **CONTEXT)
        self.assertEqual(caught.exception.code, "invalid_argument")
        self.assertEqual(caught.exception.reason, "InvalidBody")
        self.assertEqual(sorted(v.pointer for v in caught.exception.violations), ["/name", "/port"])
        with self.assertRaises(kubeopera.Error) as caught:
            kubeopera.render(APP, host="x")
        self.assertEqual(caught.exception.reason, "InvalidContext")
        self.assertEqual(sorted(v.pointer for v in caught.exception.violations), ["/app_id", "/host", "/revision"])
        with self.assertRaises(kubeopera.Error) as caught:
            kubeopera.render(dict(APP, env=[{"name": "A", "secret": "x"}]), **CONTEXT)
        self.assertEqual(caught.exception.code, "failed_precondition")

    def test_values_that_json_cannot_hold(self):
        with self.assertRaises(TypeError):
            kubeopera.render(dict(APP, port=object()), **CONTEXT)
        with self.assertRaises(TypeError):
            kubeopera.render({1: 2}, **CONTEXT)
        with self.assertRaises(ValueError):
            kubeopera.render(dict(APP, port=1 << 70), **CONTEXT)
        loop = []
        loop.append(loop)
        with self.assertRaises(ValueError):
            kubeopera.validate({"args": loop})

    def test_threads_render_at_once_and_alike(self):
        want = kubeopera.render(APP, **CONTEXT)
        got = []

        def work():
            got.append(all(kubeopera.render(APP, **CONTEXT) == want for _ in range(50)))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(got, [True] * 4)


class Others(unittest.TestCase):
    def test_validate(self):
        self.assertEqual(kubeopera.validate(APP), [])
        wrong = kubeopera.validate({"name": "shop", "port": "80", "nope": 1})
        self.assertEqual(sorted(v.pointer for v in wrong), ["/image", "/nope", "/port"])

    def test_input_hash(self):
        self.assertEqual(kubeopera.input_hash(APP, **CONTEXT), kubeopera.input_hash(dict(reversed(list(APP.items()))), **CONTEXT))
        self.assertNotEqual(kubeopera.input_hash(APP, **CONTEXT), kubeopera.input_hash(dict(APP, replicas=2), **CONTEXT))

    def test_crds(self):
        names = [c["metadata"]["name"] for c in kubeopera.crds()]
        self.assertEqual(names, ["kubeoperaapps.apps.kubeopera.io", "kubeoperatenants.tenancy.kubeopera.io"])


if __name__ == "__main__":
    unittest.main()
