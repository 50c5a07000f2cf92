"""Incidents whose truth is known, as logs: written, distorted, imported, and compared with what happened."""
