import base64
import hashlib
import hmac

import pytest

from twoefay import KnownBrowsers

KEY, NOW = bytes(range(32)), 1_795_334_400


def test_cookie_is_for_one_user_and_half_a_year() -> None:
    browsers = KnownBrowsers(KEY)
    value = browsers.value("ada", NOW)
    assert browsers.knows(value, "ada", NOW) and browsers.knows(value, "ada", NOW - 60)
    assert browsers.knows(value, "ada", NOW + 180 * 86_400 - 1)
    assert not browsers.knows(value, "ada", NOW + 180 * 86_400)
    assert not browsers.knows(value, "ada", NOW - 61)
    assert not browsers.knows(value, "bob", NOW)
    assert not browsers.knows(value, "ada", NOW, not_before=NOW + 1)
    assert not KnownBrowsers(bytes(32)).knows(value, "ada", NOW)


@pytest.mark.parametrize("value", [None, "", "x", "é", "A" * 70, "=" * 70])
def test_other_texts_are_no_cookies(value: str | None) -> None:
    assert not KnownBrowsers(KEY).knows(value, "ada", NOW)


def test_form_is_that_of_the_other_clients() -> None:
    body = NOW.to_bytes(8, "big") + bytes(12)
    tag = hmac.new(KEY, b"twoefay known browser\x00" + body + b"ada", hashlib.sha256).digest()
    value = base64.urlsafe_b64encode(body + tag).decode().rstrip("=")
    assert KnownBrowsers(KEY).knows(value, "ada", NOW)
