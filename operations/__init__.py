"""Tools for live clusters and for logs: watch, doctor, import, replay, predict. Tools use chaos; chaos never uses
tools.
"""
