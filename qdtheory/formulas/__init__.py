"""What a person writes, as a tree and as numbers."""
