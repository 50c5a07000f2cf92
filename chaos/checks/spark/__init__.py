"""The Spark session, the places of histories, and judging a history by named checks."""
