"""Answer requests, one module per family of request codes.

May import `store`, the modules beside, `dissectors.remoting` and `dissectors.endpoint`.
"""
