"""Fronts: proxies before servers, to which outside clients connect. A front reports connection attempts and frames, and
can act like a faulty server.
"""
