"""How the method enters a model: sites, layouts, attach and detach."""
