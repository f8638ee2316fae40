"""`python -m rmqtool` is `rmqtool`."""

from .cli import main

if __name__ == "__main__":
    main()
