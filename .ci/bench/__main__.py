"""`python -m bench`."""

from __future__ import annotations

import sys

from .decode.run import main

sys.exit(main())
