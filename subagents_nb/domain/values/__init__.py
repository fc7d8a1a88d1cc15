"""What everything else is built of: base classes, ids, usage, reasons; how figures and durations are said."""
