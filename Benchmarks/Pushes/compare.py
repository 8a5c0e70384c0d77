"""Runs each sender in turn against the same sink, and prints medians and ratios. See run."""
import os
import statistics
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
bench, go, python, rounds, count = sys.argv[1:6]
rounds, count = int(rounds), int(count)
widths = [1, 10, 100]
payload = (
    '{"aps":{"alert":{"title":"Example Bank","loc-key":"TWOEFAY_LOGIN_SERVICE_PLACE_IP","loc-args":["Online banking",'
    '"Vienna, Austria","203.0.113.77"]},"sound":"default","category":"TWOEFAY_LOGIN","interruption-level":'
    '"time-sensitive","mutable-content":1},"challenge":"00112233445566778899aabbccddeeff"}')


APPLE = ("/3/device/" + "a1" * 32, "payload", {
    "apns-topic": "com.example.twoefay", "apns-push-type": "alert", "apns-priority": "10",
    "authorization": "bearer " + "x" * 190, "apns-id": "01234567-89ab-cdef-0123-456789abcdef",
    "apns-expiration": "1900000000", "apns-collapse-id": "00112233445566778899aabbccddeeff"})
FCM = ("/v1/projects/bench/messages:send", "message", {
    "content-type": "application/json", "authorization": "Bearer bench"})
message = (
    '{"message":{"token":"c1dEfGhIjKlMnOpQrStUvW:APA91b' + "x_-9" * 33 + '","data":{"title":"Example Bank","loc-key":'
    '"TWOEFAY_LOGIN_SERVICE_PLACE_IP","loc-args":"[\\"Online banking\\",\\"Vienna, Austria\\",\\"203.0.113.77\\"]",'
    '"challenge":"00112233445566778899aabbccddeeff"},"android":{"priority":"HIGH","ttl":"299s"}}}')


def h2load(port, count, width, place, request):
    """Returns the figures that the other senders print.

    These are pushes per second, the latency at the median and at 99 %, and the processor time of
    each push, in microseconds.
    """
    log = os.path.join(place, "h2load.log")
    path, body, fields = request
    command = ["h2load", "-c1", f"-m{width}", f"-n{count}", "-d", os.path.join(place, body), f"--log-file={log}"]
    for name, value in fields.items():
        command += ["-H", f"{name}: {value}"]
    if os.path.exists(log):
        os.remove(log)
    process = subprocess.Popen(
        command + [f"https://127.0.0.1:{port}{path}"], stdout=subprocess.PIPE, text=True)
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0 and f"{count} succeeded" in text and f"{count} 2xx" in text, text
    seconds = next(line for line in text.splitlines() if line.startswith("finished in")).split()[3]
    with open(log, encoding="ascii") as file:
        took = sorted(int(line.split()[2]) for line in file)
    used = (usage.ru_utime + usage.ru_stime) * 1e6
    return [float(seconds), took[count // 2], took[count * 99 // 100], used / count]


def program(*words):
    text = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout
    return [float(word) for word in text.split()]


with tempfile.TemporaryDirectory() as place:
    certificate, key = os.path.join(place, "cert"), os.path.join(place, "key")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out",
         certificate], check=True, stderr=subprocess.DEVNULL)
    with open(os.path.join(place, "payload"), "w", encoding="ascii") as file:
        file.write(payload)
    with open(os.path.join(place, "message"), "w", encoding="ascii") as file:
        file.write(message)
    sink = subprocess.Popen([bench, "sink", certificate, key], stdout=subprocess.PIPE, text=True)
    try:
        port = sink.stdout.readline().strip()
        body = os.path.join(place, "payload")
        senders = {
            "h2load": lambda count, width: h2load(port, count, width, place, APPLE),
            "ours": lambda count, width: program(
                bench, "throughput", port, certificate, str(count), str(width), body),
            "h2load, FCM": lambda count, width: h2load(port, count, width, place, FCM),
            "ours, FCM": lambda count, width: program(
                bench, "throughput-fcm", port, certificate, str(count), str(width)),
            "Go net/http": lambda count, width: program(go, port, certificate, str(count), str(width), body),
            "aioapns": lambda count, width: program(
                python, os.path.join(here, "others", "aioapns_client.py"), port, certificate, str(count), str(width),
                body),
        }
        print(f"one connection, {count} pushes ({count // 10} one at a time, and by aioapns), {rounds} rounds in turn, medians")
        failed = False
        for width in widths:
            results = {name: [] for name in senders}
            for _ in range(rounds):
                for name, send in senders.items():
                    few = width == 1 or name == "aioapns"
                    results[name].append(send(count // 10 if few else count, width))
            print(f"\n{width} under way" + " " * 10 + "pushes/s   p50 µs    p99 µs    processor µs    of h2load")
            medians = {name: [statistics.median(values) for values in zip(*runs)] for name, runs in results.items()}
            for name, (rate, half, most, used) in medians.items():
                reference = "h2load, FCM" if name.endswith("FCM") else "h2load"
                ratios = [mine[0] / theirs[0] for mine, theirs in zip(results[name], results[reference])]
                print(f"  {name:16} {rate:12.0f} {half:9.0f} {most:9.0f} {used:15.1f}    {statistics.median(ratios):8.3f}")
                if name.startswith("ours") and statistics.median(ratios) < 0.7:
                    failed = True
    finally:
        sink.terminate()
        sink.wait()
sys.exit("\nless than 0.7 of h2load" if failed else 0)
