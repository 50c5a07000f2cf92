"""Proxies before servers that outside clients connect to. A front sees each connection attempt, frame and byte, and can
misbehave.
"""
