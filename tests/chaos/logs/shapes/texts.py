"""Texts that programs of RocketMQ write, of 4.9 and of 5.x, with their events and fields (texts.toml)."""

import tomllib
from pathlib import Path
from typing import Any

TEXTS: dict[str, dict[str, list[Any]]] = tomllib.loads(
    Path(__file__).with_name("texts.toml").read_text(encoding="utf-8")
)
