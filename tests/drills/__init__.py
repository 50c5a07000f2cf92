"""Drills on real clusters, repeated here: each interval of the field beside ours and Apache's, and what is allowed."""
