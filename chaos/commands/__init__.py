"""The sub-commands of `nemesrv`, a file each, the words they share, and how a command ends (ending.py, early.py)."""
