"""Is what NameServers have and say true: the checks of routes."""
