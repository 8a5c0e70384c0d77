"""PORT AUTHORITY COUNT UNDERWAY PAYLOAD: sends the same pushes with aioapns (PyPI), on one connection."""
import asyncio
import json
import logging
import resource
import ssl
import sys
import time

from aioapns import APNs, NotificationRequest, PushType
from aioapns.connection import APNsProductionClientProtocol
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

port, authority, count, underway = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
with open(sys.argv[5], encoding="utf-8") as file:
    payload = json.load(file)
# aioapns logs a warning about HTTP/2 for each response.
logging.disable(logging.WARNING)


def processor():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return (usage.ru_utime + usage.ru_stime) * 1e6


async def main():
    APNsProductionClientProtocol.APNS_SERVER = "127.0.0.1"
    APNsProductionClientProtocol.APNS_PORT = port
    key = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    context = ssl.create_default_context(cafile=authority)
    context.set_alpn_protocols(["h2"])
    client = APNs(
        key=key.decode(), key_id="BENCHKEY12", team_id="BENCHTEAM1", topic="com.example.twoefay", max_connections=1,
        ssl_context=context)

    async def send(number):
        request = NotificationRequest(
            device_token="a1" * 32, message=payload, notification_id=f"01234567-89ab-cdef-0123-{number:012x}",
            time_to_live=300, priority=10, push_type=PushType.ALERT, collapse_key="00112233445566778899aabbccddeeff")
        result = await client.send_notification(request)
        assert result.is_successful, result.description

    await send(count)
    took, numbers = [], iter(range(count))

    async def work():
        for number in numbers:
            start = time.perf_counter()
            await send(number)
            took.append((time.perf_counter() - start) * 1e6)

    beginning, used = time.perf_counter(), processor()
    await asyncio.gather(*(work() for _ in range(underway)))
    seconds, used = time.perf_counter() - beginning, processor() - used
    took.sort()
    print(f"{count / seconds:.1f} {took[count // 2]:.1f} {took[count * 99 // 100]:.1f} {used / count:.1f}")


asyncio.run(main())
