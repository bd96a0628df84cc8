"""How the reference data is made; `refresh` in the folder above runs it."""
