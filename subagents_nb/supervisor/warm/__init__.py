"""The warm supervisor: the process that forks runners, keeps the queue and reaps."""
