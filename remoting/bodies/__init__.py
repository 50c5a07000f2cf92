"""The JSON bodies: routes, registration, clients; each with encode() and decode()."""
