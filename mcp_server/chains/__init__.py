"""The contract of the toolset ``chains``: its schemas, its arguments, and chains as JSON."""
