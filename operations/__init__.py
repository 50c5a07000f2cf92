"""The commands for live clusters and for logs: watch, doctor, import, replay, predict. This package imports
nemesrv.chaos, and nemesrv.chaos does not import this package.
"""
