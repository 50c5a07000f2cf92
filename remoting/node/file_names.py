"""A node's name where a slash would part folders, or a URL's path: the slave `broker-a/1` is `broker-a@1` there."""


def file_name(node: str) -> str:
    """The node's name, or a link's, for a file or a proxy."""
    return node.replace("/", "@")


def of_file_name(text: str) -> str:
    """The name that `file_name` made that of."""
    return text.replace("@", "/")
