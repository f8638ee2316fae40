"""Answer POP consumers: pop, acknowledge, revive.

May import `handlers`, `store`, the modules beside, `dissectors.remoting` and
`dissectors.endpoint`.
"""
