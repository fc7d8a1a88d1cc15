"""The items of a chain in their order: groups, fan-outs, what is attached, resumed and appended."""
