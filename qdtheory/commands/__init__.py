"""The commands, assembled by `qdtheory.commands.cli`."""
