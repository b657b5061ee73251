"""Classes that a pipeline's file names as `module:Class`."""

from __future__ import annotations

import importlib
from typing import Any

from clickjoin.model.errors import ConfigError


def named_class(what: str, name: str) -> Any:
    """What `module:Class` names. `what`: how messages call it. Errors: ConfigError where it is not there."""
    module, _, cls = name.partition(":")
    try:
        return getattr(importlib.import_module(module), cls)
    except ImportError as error:
        raise ConfigError(
            f"{what} {name}: cannot be imported ({error})",
            remedy="Check its spelling, and that its folder is on PYTHONPATH",
        ) from error
    except AttributeError as error:
        raise ConfigError(f"{what} {name}: {module} has no class {cls}", remedy="Check its spelling") from error
