"""What an ended run came to: output, artifacts, transcript, work in worktrees."""
