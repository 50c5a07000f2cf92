"""Fronts: proxies before servers, to which outside clients connect. A front observes each connection attempt, frame and
byte, and can misbehave.
"""
