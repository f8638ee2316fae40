"""Implement `rmqtool trace`: the life of a message as a ladder diagram, JSON, a page or spans.

May import `api`, `ui`, `decode`, `version`, `analytics.life`, `analytics.inputs`,
`analytics.page.ladder` and `dissectors`.
"""
