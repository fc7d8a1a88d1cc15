"""How a value of the notebook becomes bytes: one module for each family of types, and never a pickle."""
