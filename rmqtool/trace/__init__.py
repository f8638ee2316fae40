"""`trace`: the life of a message as a ladder diagram, JSON, a page, or OpenTelemetry spans.

May import `ui` and `decode`, and of analytics `life`, `inputs` and the page's ladder."""
