"""Tools for live clusters and for logs: watch, doctor, import, replay, predict. They use chaos; chaos never uses
them.
"""
