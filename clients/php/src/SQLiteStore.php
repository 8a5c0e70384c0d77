<?php

declare(strict_types=1);

namespace Twoefay;

/** A store in a file of SQLite, for a website on one machine. */
final class SQLiteStore extends DatabaseStore
{
    public function __construct(string $path)
    {
        if ($path === ':memory:' || $path === '') {
            throw new \InvalidArgumentException('each use opens the file again: take MemoryStore');
        }
        // A web server starts scripts in their directories: a new, empty store would be made there,
        // and browsers could load it.
        if (preg_match('{\A(/|\\\\|[A-Za-z]:)}', $path) !== 1) {
            throw new \InvalidArgumentException("the path must be absolute: __DIR__ . '/…'");
        }
        $seconds = [\PDO::ATTR_TIMEOUT => 10]; // for which one process waits for another
        parent::__construct(static function () use ($path, $seconds): \PDO {
            if (!is_file($path) && @touch($path)) {
                chmod($path, 0o600); // other users of the machine must not read the open k
            }
            return new \PDO("sqlite:$path", null, null, $seconds);
        });
    }
}
