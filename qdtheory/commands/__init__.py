"""The commands, assembled by `qdtheory.cli`."""
