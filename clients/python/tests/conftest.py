from collections.abc import Iterator

import pytest
from real import ARE_THERE, PROGRAMS, RealRelay


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealRelay]:
    """One relay for all tests; each test has users of its own."""
    if not ARE_THERE:
        pytest.skip(f"no twoefay and twoefayd in {PROGRAMS} (TWOEFAY_PROGRAMS)")
    relay = RealRelay(tmp_path_factory.mktemp("relay"))
    relay.operate("website", "add", "shop")
    relay.start()
    yield relay
    relay.stop()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
