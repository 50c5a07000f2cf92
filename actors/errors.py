"""Errors in a server's settings or in the harness; such an error is never a verdict on RocketMQ."""


class HarnessError(Exception):
    """The harness failed (exit status 4); the message says in one line what failed and how to fix it."""


class ConfigError(ValueError):
    """A wrong setting: the message names the file, the key, the value and what is allowed."""

    def __init__(self, source: str, key: str, value: object, allowed: str) -> None:
        self.source, self.key, self.value, self.allowed = source, key, value, allowed
        super().__init__(f"{source}: {key}={str(value)[:200]} is not allowed; expected {allowed}")
