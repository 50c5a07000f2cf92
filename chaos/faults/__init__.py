"""Faults: what each is, and who injects it.

    what      link_faults, process_faults: a class each        asked by scenarios, oracle, checks, reports, generate
              fault, losses: what all have, what peers see     kinds: all of them, and a recorded one known again
    who       injector ─► toxiproxy_links ─► toxiproxy         processes: signals; outside: faults set by somebody else
              measuring: bandwidth_proof, link_probes    ports: addresses that nobody else takes
              proxy_lag: how late Toxiproxy carries

The first half imports nothing of the second, nor of the rest of chaos/. A new fault of links is a class in
link_faults.py and a name in AnyLinkFault there. Where it does to bytes what none does yet, `Effect` and
`DirectionState` get a field, and toxiproxy_links.py or experiment/virtual/network.py, or both, do it.
"""
