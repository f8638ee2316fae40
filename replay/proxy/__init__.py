"""A proxy in front of a real cluster: clients stay on it, because it rewrites routes.

`relay` is one connection without I/O, `fronts` knows which listener stands for which address,
`proxy` has the sockets.
"""
