"""The discrepancy of a pair at P: QDisc, DRate, and bounds by weak duality."""
