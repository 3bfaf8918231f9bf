from .search import (
    Search as Search,
    search as search,
    search_frontier as search_frontier,
)
