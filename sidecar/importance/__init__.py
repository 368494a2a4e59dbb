"""A memory's own worth: the parts of importance and how they combine."""
