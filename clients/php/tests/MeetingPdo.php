<?php

declare(strict_types=1);

namespace Twoefay\Tests;

/** A connection in whose transaction something else is done first, before one statement. */
final class MeetingPdo extends \PDO
{
    /** @param \Closure(): void $meet */
    public function __construct(
        string $dsn,
        private readonly string $statement,
        private readonly \Closure $meet,
    ) {
        parent::__construct($dsn);
    }

    public function prepare(string $query, array $options = []): \PDOStatement|false
    {
        if (str_starts_with($query, $this->statement)) {
            ($this->meet)();
        }
        return parent::prepare($query, $options);
    }
}
