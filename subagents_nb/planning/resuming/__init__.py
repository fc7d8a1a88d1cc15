"""Plans of runs that go on from an ended run."""
