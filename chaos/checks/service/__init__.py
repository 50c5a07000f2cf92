"""Checks of service (availability, recovery, prompt answers), timers and acts by hand."""
