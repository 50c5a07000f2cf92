"""Do clients follow the routes, and whom do they ask: the checks of client routes and of the choice of NameServers."""
