"""The code of README.md, as a newcomer copies it."""

import os
import re
import types
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from real import RealRelay

README = (Path(__file__).parents[1] / "README.md").read_text()


def test_fifteen_lines(
    real: RealRelay, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = re.search(r"```python shop.py\n(.*?)```", README, re.DOTALL)
    assert found
    code = found[1].replace("https://localhost:8080", real.origin)
    assert len([line for line in code.splitlines() if line.strip()]) <= 15
    monkeypatch.chdir(real.directory)
    shop = types.ModuleType("shop")
    shop.__file__ = str(real.directory / "shop.py")
    exec(compile(code, "shop.py", "exec"), vars(shop))

    shown = shop.relay.ask
    logins = []

    def ask(*values: object, **named: object) -> object:
        logins.append(shown(*values, **named))
        asked.set_result(None)
        return logins[-1]

    asked: Future[None] = Future()
    shop.relay.ask = ask
    uri = shop.relay.register("newcomer").uri
    real.enrol(uri, "newcomer")
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(shop.log_in, "newcomer", "192.0.2.7", "Firefox")
        asked.result()
        assert real.answer("approve", logins[0].challenge, logins[0].number, "newcomer") == 0
        assert waiting.result() is True
    assert f"phone: {logins[0].number}" in capsys.readouterr().out
    assert os.path.exists("shop.db") and "<svg" in shop.enrol("another-newcomer")
