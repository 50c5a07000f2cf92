"""Does the cluster answer, when again, at which periods, and to acts by hand: the checks of service and timers."""
