"""The sub-commands of `nemesrv`, one file each, their shared options, and how a command ends (ending.py, early.py)."""
