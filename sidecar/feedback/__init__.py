"""How reports of use are merged and counted."""
