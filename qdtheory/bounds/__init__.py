"""Why a gain cannot be larger: duality, boxes, and what seals a bound."""
