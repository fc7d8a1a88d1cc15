"""What a cell holds below its first line: YAML, texts, and names of the person's."""
