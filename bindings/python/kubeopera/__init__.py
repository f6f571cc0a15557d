"""kubeopera's engines in process.

    import kubeopera
    files = kubeopera.render({"name": "shop", "image": "nginx", "port": 80},
                             app_id="0190b6f0-0000-7000-8000-000000000001", revision=1, host="shop.apps.example.com")
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping

from . import _native
from .errors import Error, Violation

__all__ = ["Error", "Violation", "crds", "input_hash", "render", "validate"]


def render(app: Mapping[str, Any], **context: Any) -> Dict[str, str]:
    """Renders an app to Kubernetes manifests: file name to YAML.

    `app` is the body of `POST /api/v1/apps`; `context` has at least `app_id`, `revision` and `host`.
    Raises Error (invalid_argument with violations, or failed_precondition). The GIL is released while rendering.
    """
    return _native.render(app, context)


def validate(app: Mapping[str, Any]) -> List[Violation]:
    """Everything that is wrong with an app, field by field; empty when it is fine."""
    return [Violation(pointer, message) for pointer, message in _native.validate(app)]


def input_hash(app: Mapping[str, Any], **context: Any) -> str:
    """A hash of what render() looks at: equal hashes give equal files."""
    return _native.input_hash(app, context)


def crds() -> List[Dict[str, Any]]:
    """The CustomResourceDefinitions of KubeOperaApp and KubeOperaTenant."""
    return _native.crds()
