"""The commands, each a file, assembled by `qdtheory.commands.cli`."""
