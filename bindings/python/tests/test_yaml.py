"""PyYAML, a YAML 1.1 reader, reads back what the C++ emitter wrote (tests/golden/yaml)."""

import json
import pathlib
import unittest

try:
    import yaml
except ImportError:
    yaml = None

GOLDEN = pathlib.Path(__file__).resolve().parents[3] / "tests/golden/yaml"


@unittest.skipIf(yaml is None, "python3-yaml is not installed")
class Yaml(unittest.TestCase):
    def test_what_was_written_comes_back(self):
        text = (GOLDEN / "written.yaml").read_bytes().decode()
        self.assertEqual(yaml.safe_load(text), json.loads((GOLDEN / "corpus.json").read_text()))


if __name__ == "__main__":
    unittest.main()
