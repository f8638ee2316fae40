import pytest

pytest.register_assert_rewrite(f"{__name__}.refusal_checks")
