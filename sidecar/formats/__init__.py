"""The files that memories come from and go to: parsed and written here, opened and sent elsewhere. Pure."""
