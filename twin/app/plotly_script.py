"""Plotly's script, from the installed wheel: pages draw with it, and nothing comes from the network."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

NAME = "plotly.min.js"


def plotly_script() -> Path:
    """Without importing the package, which takes longer than serving it."""
    spec = find_spec("plotly")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("plotly is not installed: `make env`")
    return Path(spec.origin).with_name("package_data") / NAME
