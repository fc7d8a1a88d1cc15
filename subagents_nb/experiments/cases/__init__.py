"""Cases: what an experiment asks in each of its settings, read from wherever it stands."""
