"""Tools for live clusters and for logs: watch, doctor, import, replay, predict. Tools import nemesrv.chaos, which
imports no tools.
"""
