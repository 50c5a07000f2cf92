"""Readers of a recorded history: rows in, plain tables and stretches out. They judge nothing."""
