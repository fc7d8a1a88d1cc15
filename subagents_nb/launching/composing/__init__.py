"""From the words of a launch to its plan: arguments, flows, references, appended items."""
