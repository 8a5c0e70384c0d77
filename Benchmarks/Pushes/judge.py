"""Checks the results of the storm. See storm."""
import re
import sqlite3
import sys

place, count = sys.argv[1], int(sys.argv[2])
database = sqlite3.connect(f"file:{place}/storm.db?mode=ro", uri=True)


def number(query):
    return database.execute(query).fetchone()[0]


def lines(name):
    with open(f"{place}/{name}", encoding="ascii") as file:
        return [line for line in file.read().splitlines() if line]


faults = []


def wanted(what, seen, right):
    print(f"{what}: {seen}")
    if not right:
        faults.append(what)


states = dict(database.execute("SELECT state, count(*) FROM step WHERE factor = 'push' GROUP BY state"))
wanted("push steps by state", states, set(states) <= {"sent", "undeliverable"} and sum(states.values()) == count)
several = number(
    "SELECT count(*) FROM (SELECT challenge_id FROM audit WHERE event = 'push.settled' GROUP BY challenge_id "
    "HAVING count(*) <> 1)")
wanted("challenges with more than one final delivery state", several, several == 0)
settled = number("SELECT count(DISTINCT challenge_id) FROM audit WHERE event = 'push.settled'")
wanted("challenges with one", settled, settled == count)
left = number("SELECT count(*) FROM outbox WHERE kind = 'push'")
wanted("pushes left in the outbox", left, left == 0)

deliveries = [line.split() for line in lines("deliveries")]
twice = {words[1].replace("-", "") for words in deliveries if words[0] == "twice"}
totals = {words[0]: int(words[1]) for words in deliveries if words[0] != "twice"}
ambiguous = set(lines("ambiguous"))
print(f"taken over by the service: {totals['accepted']}, of {totals['ids']} ids")
print(f"ambiguous: {len(ambiguous)}; taken over twice: {len(twice)}")
wanted("taken over twice without having been ambiguous", len(twice - ambiguous), twice <= ambiguous)
wanted("sent and yet unknown to the service", max(0, states.get("sent", 0) - totals["ids"]), states.get("sent", 0) <= totals["ids"])

with open(f"{place}/report", encoding="utf-8") as file:
    resident = [int(mebibytes) for mebibytes in re.findall(r"^asked: .* resident (\d+)", file.read(), re.MULTILINE)]
half, end = resident[len(resident) // 2], resident[-1]
wanted("resident memory from the half to the end", f"{half} -> {end} MiB", end <= half * 1.1 + 2)
sys.exit("not as it should be: " + "; ".join(faults) if faults else 0)
