"""Defines the faults, and injects them.

    what      link_faults, process_faults: a class each        used by scenarios, oracle, checks, reports, generate
              fault: what all have, what peers see             kinds: all of them, and how a recorded one is recognized
    how       injector ─► toxiproxy_links ─► toxiproxy         processes: signals; outside: faults set by somebody else
              proxy_lag: how late Toxiproxy carries      ports: addresses that nobody else takes

The modules that define faults import neither the modules that inject faults nor the rest of chaos/.
"""
