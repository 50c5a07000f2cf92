"""What is wrong with a setting of a NameServer or a broker, in one sentence."""

from __future__ import annotations


class ConfigError(ValueError):
    """A setting that cannot be: the message names the file, the key, the value and what is allowed."""

    def __init__(self, source: str, key: str, value: object, allowed: str) -> None:
        self.source, self.key, self.value, self.allowed = source, key, value, allowed
        super().__init__(f"{source}: {key}={str(value)[:200]}: allowed is {allowed}")
