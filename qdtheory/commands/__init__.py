"""What each command does; `qdtheory.cli` puts them together."""
