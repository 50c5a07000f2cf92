"""Checks of clients' routes and of their choice of NameServers."""
