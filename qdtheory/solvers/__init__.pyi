from .search import Search as Search, search as search
