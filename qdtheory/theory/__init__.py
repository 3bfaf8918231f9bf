"""The theorems: frontier, dominance, compatibility and what proves it."""
