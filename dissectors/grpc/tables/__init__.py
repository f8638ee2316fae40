"""Tables of `apache.rocketmq.v2`: its enums, message types and methods, as declarative facts."""
