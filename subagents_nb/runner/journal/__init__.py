"""Everything a runner writes: status, events, result; and the clock that they are timed by."""
