"""Checks of the routes that NameServers have and answer."""
