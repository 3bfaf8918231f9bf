"""Why a verdict holds: signs by interval arithmetic, Theorem 3, and beyond it."""
