"""Live clusters and last night's logs: watch, doctor, import, replay, predict. It stands on chaos, never the other way."""
