"""What programs and notebooks import as `rmqtool`, and what commands share with them.

May import `dissectors`, `analytics` and `summary`; knows no command. Nothing heavy is imported
before it is used.
"""
