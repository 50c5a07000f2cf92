"""The Spark session, where histories lie, and a history judged by named checks."""
