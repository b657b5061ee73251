"""A module of an adapter's package on an executor that has no such package: made empty, then filled."""

from __future__ import annotations

import builtins
import types
from collections.abc import Mapping
from typing import Any


def made(name: str) -> types.ModuleType:
    """An empty module, which others can refer to before it is filled: modules of a package import each other."""
    return types.ModuleType(name)


def filled(module: types.ModuleType, names: Mapping[str, Any]) -> None:
    """Give a module its names."""
    vars(module).update(names)
    vars(module)["__builtins__"] = vars(builtins)
