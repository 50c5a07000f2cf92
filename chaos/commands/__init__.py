"""The long sub-commands of `nemesrv`, a file each; the short ones stand in chaos/__main__.py."""
