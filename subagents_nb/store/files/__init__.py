"""Files as such: opened and written safely, locked, encoded, found by patterns, hashed."""
