"""Writes node names without slashes in file names and URLs: the slave `broker-a/1` becomes `broker-a@1`."""


def file_name(node: str) -> str:
    """Return a node's or link's name for use as a file's or proxy's name."""
    return node.replace("/", "@")


def of_file_name(text: str) -> str:
    """Return the node's or link's name that `file_name` changed into this text."""
    return text.replace("@", "/")
