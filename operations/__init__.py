"""Live clusters and last night's logs: watch, doctor, import, replay, predict. Stands on chaos; chaos never on it."""
