"""`diagnose`: what is wrong, why, and what to do about it.

May import `ui`, `decode` and `live`, and of analytics `diagnosis` and `inputs`."""
