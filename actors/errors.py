"""What can go wrong with a server's settings, and with the processes that carry an experiment; never a verdict."""


class HarnessError(Exception):
    """The harness failed (exit status 4): one line that says what, and how to mend it."""


class ConfigError(ValueError):
    """A setting that cannot be: the message names the file, the key, the value and what is allowed."""

    def __init__(self, source: str, key: str, value: object, allowed: str) -> None:
        self.source, self.key, self.value, self.allowed = source, key, value, allowed
        super().__init__(f"{source}: {key}={str(value)[:200]}: allowed is {allowed}")
