"""The end of a runner: forced where it hears nothing, proved, written down."""
