"""Take facts from headers and bodies: what diagnosis needs of them that has no column of its own.

A fact is `name=value`; `names` declares all names and what they hold, and each form of value is
written and read side by side. Only requests and answers that have something to say get facts, so
that a plain send costs nothing. Everything is bounded, and nothing raises because of what was
captured. May import `fastjson`, `messages` and the modules beside."""
