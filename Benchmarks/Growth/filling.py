"""Rows of a store that has grown: more users with a phone each, and the logins of the last month.

Every row is a copy of one that the relay has written, with other ids, names and times, so that it has its length and its
place in every index. The copies are made by SQL. Their MACs are those of the original, so they are not genuine: no user of
theirs could log in, and the load reads none of them. The users of the load were enrolled through the API, and their rows lie
at random places of the tables.
"""
import glob
import hashlib
import os
import sqlite3

# Rows of one statement, users of one original, and days over which the logins are spread: retention deletes after 30.
BATCH, DAYS = 100_000, 29
# A signed link of the audit has the rows of one transaction. A relay that is not busy makes one for each row.
ENTRIES = 48


class SQLiteTables:
    # Whether a row has a number of its own, by which the table is ordered.
    has_places = True

    def __init__(self, store):
        self.path = store.url.removeprefix("sqlite:")
        self.database = sqlite3.connect(self.path, isolation_level=None)
        for name, digest in (("short", hashlib.md5), ("long", hashlib.sha256)):
            self.database.create_function(name, 1, lambda text, digest=digest: digest(text.encode()).digest(), deterministic=True)
        # The relay does not run, and the rows can be made again.
        for setting in ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE", "cache_size = -3000000"):
            self.database.execute(f"PRAGMA {setting}")

    def run(self, sql):
        return self.database.execute(sql).fetchall()

    def columns(self, table):
        return [row[1] for row in self.run(f"PRAGMA table_info({table})")]

    @staticmethod
    def numbers(first, last):
        return f"(WITH RECURSIVE n(i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n WHERE i < {last}) SELECT i FROM n)"

    @staticmethod
    def key(prefix, number):
        return f"short('{prefix}' || ({number}))"

    @staticmethod
    def digest(prefix, number):
        return f"long('{prefix}' || ({number}))"

    @staticmethod
    def before_now(seconds):
        return f"strftime('%Y-%m-%d %H:%M:%f', 'now', (-({seconds})) || ' seconds')"

    @staticmethod
    def named(number):
        return f"'crowd' || ({number})"

    name_number = "CAST(substr(username, 5) AS INTEGER)"

    def spread(self, first, count):
        """Moves the rows of the first users to random places among those of the others: a table is in the order of rowid."""
        for table in ("user", "device", "used_key", "certificate"):
            self.run(f"CREATE TEMP TABLE moved AS SELECT rowid AS old FROM {table} WHERE rowid <= {first}")
            step = max(count // max(first, 1), 1)
            self.run(f"UPDATE {table} SET rowid = {2 * first} + 2 * (rowid * {step} - abs(random()) % {step}) + 1 "
                     f"WHERE rowid IN (SELECT old FROM moved)")
            self.run("DROP TABLE moved")

    def size(self):
        return os.path.getsize(self.path)

    def close(self):
        self.database.execute("PRAGMA locking_mode = NORMAL")
        self.database.execute("PRAGMA journal_mode = WAL")
        self.database.close()
        os.sync()


class MariaDBTables:
    has_places = False

    def __init__(self, store):
        self.store = store
        self.store.query("SET GLOBAL innodb_flush_log_at_trx_commit = 0")

    def run(self, sql):
        text = self.store.query(f"USE twoefay; SET unique_checks = 0; {sql}")
        return [tuple(line.split("\t")) for line in text.splitlines()]

    def columns(self, table):
        return [row[0] for row in self.run(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = 'twoefay' "
            f"AND table_name = '{table}' ORDER BY ordinal_position")]

    @staticmethod
    def numbers(first, last):
        return f"(SELECT seq AS i FROM seq_{first}_to_{last})"

    @staticmethod
    def key(prefix, number):
        return f"unhex(md5(concat('{prefix}', {number})))"

    @staticmethod
    def digest(prefix, number):
        return f"unhex(sha2(concat('{prefix}', {number}), 256))"

    @staticmethod
    def before_now(seconds):
        return f"timestampadd(MICROSECOND, -1000000 * ({seconds}), utc_timestamp(3))"

    @staticmethod
    def named(number):
        return f"concat('crowd', {number})"

    name_number = "CAST(substr(username, 5) AS SIGNED)"

    def spread(self, first, count):
        """Does nothing: a table is in the order of its random ids."""

    def size(self):
        self.run("SET GLOBAL innodb_max_dirty_pages_pct = 0")
        return sum(os.path.getsize(path) for path in glob.glob(os.path.join(self.store.data, "twoefay", "*.ibd")))

    def close(self):
        self.store.query("SET GLOBAL innodb_flush_log_at_trx_commit = 1; SET GLOBAL innodb_max_dirty_pages_pct = 90")


class Filling:
    """The copies in one store. `real` users are there, with names from user1 on, and user1 has logged in."""

    def __init__(self, tables, real):
        self.tables, self.real = tables, real

    def insert(self, table, source, changed, original, left_out=(), place=None):
        """Copies the row of `table` that fits the condition for each row of the source."""
        columns = [name for name in self.tables.columns(table) if name not in left_out]
        if place is not None and self.tables.has_places:
            columns, changed = ["rowid", *columns], {"rowid": place, **changed}
        values = ", ".join(changed.get(name, f"o.{name}") for name in columns)
        self.tables.run(
            f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM {source} s, "
            f"(SELECT * FROM {table} WHERE {original} LIMIT 1) o")

    def users(self, count):
        """Adds users, each with a phone, its key and its certificate, and returns their number."""
        key, digest = self.tables.key, self.tables.digest
        one = "(SELECT id FROM user WHERE username = 'user1')"
        phone = f"(SELECT id FROM device WHERE user_id = {one})"
        for first in range(0, count, BATCH):
            source = self.tables.numbers(first, min(first + BATCH, count) - 1)
            for table, original, changed in (
                    ("user", f"id = {one}", {
                        "id": key("u", "s.i"), "token": key("t", "s.i"), "username": self.tables.named("s.i"),
                        "challenge_id": key("c", "s.i"), "operation": key("o", "s.i")}),
                    ("device", f"user_id = {one}", {
                        "id": key("d", "s.i"), "user_id": key("u", "s.i"), "thumbprint": digest("k", "s.i"),
                        "revocation": digest("r", "s.i"), "operation": key("o", "s.i")}),
                    ("used_key", f"device_id = {phone}", {"thumbprint": digest("k", "s.i"), "device_id": key("d", "s.i")}),
                    ("certificate", f"device_id = {phone}", {
                        "serial": f"lower(hex({key('s', 's.i')}))", "device_id": key("d", "s.i")})):
                # Every second place is left for the users of the load.
                self.insert(table, source, changed, original, place=f"{2 * self.real} + 2 * s.i")
        self.tables.spread(self.real, count)
        return count

    def sources(self, people, each, days, newest):
        """Returns the sources of so many logins for each of the first users: their number, user, phone, and age in seconds."""
        key, total = self.tables.key, people * each
        for first in range(0, total, BATCH):
            numbers = self.tables.numbers(first, min(first + BATCH, total) - 1)
            yield (f"(SELECT i AS j, {key('u', f'i % {people}')} AS person, {key('d', f'i % {people}')} AS phone, "
                   f"{newest} + ({total} - i) * {days * 86400.0 / total!r} AS age FROM {numbers} n)")
        # SQLite keeps the order of a CROSS JOIN.
        own = f"{self.tables.name_number} + n.i * {self.real}"
        yield (f"(SELECT {total} + {own} AS j, u.id AS person, d.id AS phone, "
               f"{newest} + ({each * self.real} + 1 - ({own})) * {days * 86400.0 / (each * self.real)!r} AS age "
               f"FROM {self.tables.numbers(0, each - 1)} n CROSS JOIN user u CROSS JOIN device d ON d.user_id = u.id "
               f"WHERE u.username LIKE 'user%')")

    def logins(self, count, crowd, kinds, days=DAYS, newest=7200, mark=""):
        """Adds logins of the crowd, and as many for each user of the load: the rows of `kinds`. Returns their number.

        `mark` tells the ids of two calls apart; the audit rows of a call with one have no links.
        """
        people = min(count, crowd)
        if people == 0:
            return 0
        key, digest, ago = self.tables.key, self.tables.digest, self.tables.before_now
        each, challenge, at = count // people, key(f"c{mark}", "s.j"), ago("s.age")
        link = key(f"w{mark}", "1")
        for source in self.sources(people, each, days, newest):
            if "challenges" in kinds:
                self.insert("challenge", source, {
                    "id": challenge, "user_id": "s.person", "device_id": "s.phone", "nonce": key("n", "s.j"),
                    "asked_at": at, "expires_at": ago("s.age - 300"), "decided_at": ago("s.age - 10"),
                    "operation": key(f"a{mark}", "s.j")}, "decision = 'approve'")
                self.insert("step", source, {"challenge_id": challenge, "at": ago("s.age - 10")}, "state = 'answered'")
            if "audit" in kinds:
                for name, event, age in (("a", "challenge.asked", "s.age"), ("b", "challenge.answered", "s.age - 10")):
                    self.insert("audit", source, {
                        "operation": key(f"{name}{mark}", "s.j"), "at": ago(age), "user_id": "s.person",
                        "challenge_id": challenge, "device_id": "CASE WHEN o.device_id IS NULL THEN NULL ELSE s.phone END",
                        **({"writer": "NULL", "link": "NULL"} if mark else {})}, f"event = '{event}'", left_out=("id",))
                    if not mark:
                        self.insert("audit_link", source, {
                            "writer": link, "sequence": f"2 * s.j + {0 if name == 'a' else 1}", "at": ago(age),
                            "former": digest("h", "s.j")}, f"length(entries) = {ENTRIES}")
            if "answers" in kinds:
                self.insert("idempotency", source, {
                    "digest": digest(f"i{mark}", "s.j"), "fingerprint": digest("f", "s.j"),
                    "operation": key(f"a{mark}", "s.j"), "created_at": at}, "state = 'done'")
        return each * (people + self.real)
