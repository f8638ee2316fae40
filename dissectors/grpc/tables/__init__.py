"""Tables of `apache.rocketmq.v2`: its enums, message types and methods, as declarative facts.

Imports nothing else of the project.
"""
