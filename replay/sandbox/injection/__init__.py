"""Describe injections, what shall go wrong, and make it go wrong in the sandbox's answers.

May import the sandbox's requests and events; no handler and no store."""
