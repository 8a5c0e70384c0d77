<?php

declare(strict_types=1);

namespace Twoefay;

/**
 * A store in PostgreSQL, MySQL, MariaDB or SQLite, over PDO.
 *
 *     new DatabaseStore(fn() => new \PDO('pgsql:dbname=shop', 'shop', $password))
 *
 * The function makes a connection, which is closed after each use. It must not return the one of
 * the website, whose transaction could bring a spent request back. If connecting is slow, pass
 * [PDO::ATTR_PERSISTENT => 'twoefay']: with `true`, PDO would return that of the website, if it is
 * persistent too, and roll its transaction back. The tables are made at their first use.
 */
class DatabaseStore implements Store
{
    // VARCHAR rather than TEXT: MySQL has no key over a TEXT. All rows are written by a key: MySQL
    // locks all rows that a statement looks at, also those of other users.
    private const TABLES = [
        'twoefay_user (name VARCHAR(64) PRIMARY KEY, token VARCHAR(255) NOT NULL)',
        'twoefay_secret (name VARCHAR(64) NOT NULL, k VARCHAR(64) NOT NULL, at BIGINT NOT NULL,'
            . ' PRIMARY KEY (name, k))',
        'twoefay_phone (name VARCHAR(64) NOT NULL, device VARCHAR(255) NOT NULL,'
            . ' jwk VARCHAR(1000) NOT NULL, revoked SMALLINT DEFAULT 0 NOT NULL,'
            . ' PRIMARY KEY (name, device))',
        'twoefay_request (request VARCHAR(64) PRIMARY KEY, at BIGINT NOT NULL)',
        'twoefay_event (event VARCHAR(255) PRIMARY KEY, at BIGINT NOT NULL)',
    ];

    /** So many old rows are deleted by one call: a login does not wait for all. */
    private const MOST_OLD_ROWS = 100;

    /** How often a transaction is tried that met another one. */
    private const TRIES = 10;

    /** @param \Closure(): \PDO $connect */
    public function __construct(private readonly \Closure $connect)
    {
    }

    public function addUser(string $username, string $token): void
    {
        $name = self::keyOf($username);
        $isNew = $this->inserts(function (\PDO $db) use ($name, $token): bool {
            self::run($db, 'INSERT INTO twoefay_user (name, token) VALUES (?, ?)', $name, $token);
            return true;
        });
        // In this order: PostgreSQL would let two at once delete the row, and then both insert it.
        if (!$isNew) {
            $update = 'UPDATE twoefay_user SET token = ? WHERE name = ?';
            $this->transaction(fn(\PDO $db) => self::run($db, $update, $token, $name));
        }
    }

    public function token(string $username): ?string
    {
        $select = 'SELECT token FROM twoefay_user WHERE name = ?';
        return $this->column($select, self::keyOf($username))[0] ?? null;
    }

    public function addSecret(string $username, #[\SensitiveParameter] string $k, int $now): void
    {
        $row = [self::keyOf($username), Base64Url::encode($k), $now];
        $this->deleteOld('twoefay_secret', $now - self::SECRET_LIFE, 'name', 'k');
        $insert = 'INSERT INTO twoefay_secret (name, k, at) VALUES (?, ?, ?)';
        $this->transaction(fn(\PDO $db) => self::run($db, $insert, ...$row));
    }

    public function secrets(string $username, int $now): array
    {
        $select = 'SELECT k FROM twoefay_secret WHERE name = ? AND at > ?';
        $found = $this->column($select, self::keyOf($username), $now - self::SECRET_LIFE);
        return array_map(Base64Url::decode(...), $found);
    }

    public function pin(
        string $username,
        string $device,
        array $jwk,
        #[\SensitiveParameter] string $k,
    ): bool {
        $name = self::keyOf($username);
        $row = [$name, $device, Json::write($jwk)];
        return $this->inserts(function (\PDO $db) use ($name, $k, $row): bool {
            // First: of two that run at once, the second waits here, and then finds no row. All
            // rows of the user are locked in one order, so that none waits for the other.
            self::run($db, 'UPDATE twoefay_secret SET at = at WHERE name = ?', $name);
            $delete = 'DELETE FROM twoefay_secret WHERE name = ?';
            $used = self::run($db, "$delete AND k = ?", $name, Base64Url::encode($k));
            if ($used->rowCount() !== 1) {
                return false;
            }
            self::run($db, $delete, $name);
            $insert = 'INSERT INTO twoefay_phone (name, device, jwk) VALUES (?, ?, ?)';
            self::run($db, $insert, ...$row);
            return true;
        });
    }

    public function pins(string $username): array
    {
        $select = 'SELECT device, jwk FROM twoefay_phone WHERE name = ? AND revoked = 0';
        $name = self::keyOf($username);
        $rows = $this->transaction(
            fn(\PDO $db): array => self::run($db, $select, $name)->fetchAll(\PDO::FETCH_NUM)
        );
        $pins = [];
        foreach ($rows as [$device, $jwk]) {
            $pins[$device] = json_decode($jwk, true, 4, JSON_THROW_ON_ERROR);
        }
        return $pins;
    }

    public function wasPinned(string $username): bool
    {
        $select = 'SELECT device FROM twoefay_phone WHERE name = ?';
        return $this->column($select, self::keyOf($username)) !== [];
    }

    public function unpin(string $username, string $device): void
    {
        $this->revoke(self::keyOf($username), $device);
    }

    public function unpinByToken(string $token, string $device): void
    {
        foreach ($this->column('SELECT name FROM twoefay_user WHERE token = ?', $token) as $name) {
            $this->revoke($name, $device);
        }
    }

    private function revoke(string $name, string $device): void
    {
        $was = 'SELECT name FROM twoefay_phone WHERE name = ? AND device = ? AND revoked = 1';
        $close = "DELETE FROM twoefay_secret WHERE name = ? AND NOT EXISTS ($was)";
        $revoke = 'UPDATE twoefay_phone SET revoked = 1 WHERE name = ? AND device = ?';
        $this->transaction(function (\PDO $db) use ($close, $revoke, $name, $device): void {
            // First: if the phone is pinned at this moment, it waits here, and then finds its row.
            self::run($db, $close, $name, $name, $device);
            self::run($db, $revoke, $name, $device);
        });
    }

    public function forget(string $username): void
    {
        $this->transaction(function (\PDO $db) use ($username): void {
            foreach (['user', 'secret', 'phone'] as $table) {
                self::run($db, "DELETE FROM twoefay_$table WHERE name = ?", self::keyOf($username));
            }
        });
    }

    public function open(string $request, int $now): void
    {
        $this->deleteOld('twoefay_request', $now - self::REQUEST_LIFE, 'request');
        $insert = 'INSERT INTO twoefay_request (request, at) VALUES (?, ?)';
        $this->transaction(fn(\PDO $db) => self::run($db, $insert, $request, $now));
    }

    public function spend(string $request): bool
    {
        $delete = 'DELETE FROM twoefay_request WHERE request = ?';
        return $this->transaction(
            fn(\PDO $db): bool => self::run($db, $delete, $request)->rowCount() === 1
        );
    }

    public function hasSeen(string $event): bool
    {
        return $this->column('SELECT event FROM twoefay_event WHERE event = ?', $event) !== [];
    }

    public function see(string $event, int $now): void
    {
        $this->deleteOld('twoefay_event', $now - self::EVENT_LIFE, 'event');
        $insert = 'INSERT INTO twoefay_event (event, at) VALUES (?, ?)';
        $this->inserts(
            fn(\PDO $db): bool => self::run($db, $insert, $event, $now)->rowCount() === 1
        );
    }

    /**
     * The name as a key. Databases compare texts without case or trailing spaces, as their
     * collation says: another user's phone must not count because of that.
     */
    private static function keyOf(string $username): string
    {
        return hash('sha256', $username);
    }

    /** Deletes old rows by their keys: a search by time would lock the others (see above). */
    private function deleteOld(string $table, int $before, string ...$key): void
    {
        $columns = implode(', ', $key);
        $select = "SELECT $columns FROM $table WHERE at < ? LIMIT " . self::MOST_OLD_ROWS;
        // Again with the time: the row may be another one meanwhile.
        $delete = "DELETE FROM $table WHERE at < ? AND " . implode(' = ? AND ', $key) . ' = ?';
        $old = $this->transaction(
            fn(\PDO $db): array => self::run($db, $select, $before)->fetchAll(\PDO::FETCH_NUM)
        );
        // Each in a transaction of its own: SQLite refuses to write in one that has read, if
        // another one wrote since, and MySQL holds no row of another user for long.
        foreach ($old as $row) {
            $this->transaction(
                fn(\PDO $db): bool => self::run($db, $delete, $before, ...$row)->rowCount() === 1
            );
        }
    }

    /** @return list<string> */
    private function column(string $select, string|int ...$values): array
    {
        return $this->transaction(
            fn(\PDO $db): array => self::run($db, $select, ...$values)->fetchAll(\PDO::FETCH_COLUMN)
        );
    }

    private static function run(
        \PDO $db,
        string $statement,
        #[\SensitiveParameter] string|int ...$values,
    ): \PDOStatement {
        $prepared = $db->prepare($statement);
        foreach (array_values($values) as $index => $value) {
            // Not as an argument of `execute`: a stack trace would show it.
            $prepared->bindValue($index + 1, $value);
        }
        $prepared->execute();
        return $prepared;
    }

    /**
     * A transaction that inserts a row. False, and nothing is changed, if the row is there already:
     * `INSERT … IF NOT EXISTS` differs between databases.
     *
     * @param \Closure(\PDO): bool $work
     */
    private function inserts(\Closure $work): bool
    {
        try {
            return $this->transaction($work);
        } catch (\PDOException $error) {
            if (str_starts_with(self::state($error), '23')) { // an integrity constraint (SQL:2016)
                return false;
            }
            throw $error;
        }
    }

    /**
     * Runs all of the work or nothing, and repeats it if it met another transaction: two that pin
     * phones of two users can lock rows in turn.
     *
     * @template T
     * @param \Closure(\PDO): T $work
     * @return T
     */
    private function transaction(\Closure $work): mixed
    {
        for ($try = 1;; $try++) {
            $db = $this->connection();
            $db->beginTransaction();
            try {
                $result = $work($db);
                $db->commit();
                return $result;
            } catch (\PDOException $error) {
                self::rollBack($db);
                if ($try === self::TRIES || !$this->canRepeat($error)) {
                    throw $error;
                }
                usleep(random_int(0, $try * 10_000)); // or the same ones would meet again
            } catch (\Throwable $error) {
                self::rollBack($db);
                throw $error;
            }
        }
    }

    private static function rollBack(\PDO $db): void
    {
        try {
            $db->inTransaction() && $db->rollBack();
        } catch (\PDOException) { // the connection is lost, and the database rolls back itself
        }
    }

    /** Whether the error was a deadlock, or that of tables that are made now. */
    private function canRepeat(\PDOException $error): bool
    {
        $state = self::state($error);
        if (in_array($state, ['40001', '40P01'], true)) {
            return true;
        }
        $isMissing = in_array($state, ['42P01', '42S02'], true)
            || str_contains($error->getMessage(), 'no such table'); // SQLite has no state for this
        if ($isMissing) {
            $this->createTables();
        }
        return $isMissing;
    }

    private function createTables(): void
    {
        $db = $this->connection();
        foreach (self::TABLES as $table) {
            try {
                $db->exec("CREATE TABLE IF NOT EXISTS $table");
            } catch (\PDOException $error) {
                // PostgreSQL reports so that another process makes the same table at this moment.
                if (!in_array(self::state($error), ['23505', '42P07', '42710'], true)) {
                    throw $error;
                }
            }
        }
    }

    private static function state(\PDOException $error): string
    {
        return (string) ($error->errorInfo[0] ?? '');
    }

    private function connection(): \PDO
    {
        $db = ($this->connect)();
        $db->setAttribute(\PDO::ATTR_ERRMODE, \PDO::ERRMODE_EXCEPTION);
        return $db;
    }
}
