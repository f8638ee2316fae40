"""Describe injections, which are failures on demand, and make them happen in answers.

May import `errors`, `events`, `request`, `server`, `dissectors.quantities` and
`dissectors.remoting`; no handler and no store.
"""
