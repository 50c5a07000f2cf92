"""The JSON bodies of routes, registration and clients, each with encode() and decode()."""
