"""The sub-commands of `nemesrv`, a file each; their shared options; and how a command ends (ending.py, early.py)."""
