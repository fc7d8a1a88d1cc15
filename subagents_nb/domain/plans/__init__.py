"""What is asked for, and the frozen plan that is made of it: steps, limits, inputs, outputs."""
