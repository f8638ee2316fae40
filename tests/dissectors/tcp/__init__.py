import pytest

pytest.register_assert_rewrite(f"{__name__}.direction", f"{__name__}.reading")
