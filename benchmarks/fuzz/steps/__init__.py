"""Random steps of declared sub-steps, of which `checks.check(seed)` says whether all engines agree on them."""
