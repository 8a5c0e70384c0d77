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
        $seconds = [\PDO::ATTR_TIMEOUT => 10]; // for which one process waits for another
        parent::__construct(static fn(): \PDO => new \PDO("sqlite:$path", null, null, $seconds));
    }
}
