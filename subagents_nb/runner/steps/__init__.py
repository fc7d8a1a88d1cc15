"""One step at work: carried out, steered, verified, reviewed, accepted."""
