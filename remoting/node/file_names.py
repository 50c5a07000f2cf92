"""Names of nodes in file names and URLs, without slashes: the slave `broker-a/1` is `broker-a@1`."""


def file_name(node: str) -> str:
    """Return a node's or link's name for use as a file's or proxy's name."""
    return node.replace("/", "@")


def of_file_name(text: str) -> str:
    """Return the name of which `file_name` made this text."""
    return text.replace("@", "/")
