<?php

declare(strict_types=1);

namespace Twoefay\Tests;

use PHPUnit\Framework\TestCase;
use Twoefay\DatabaseStore;
use Twoefay\MemoryStore;
use Twoefay\SQLiteStore;
use Twoefay\Store;

/** The stores under test, each by a name that another process can open, too. */
final class Stores
{
    /** The variables with the DSN of PDO of a database, with `user=` and `password=` in it. */
    public const DATABASES = [
        'postgresql' => 'TWOEFAY_TEST_POSTGRESQL',
        'mysql' => 'TWOEFAY_TEST_MYSQL',
    ];

    public static function open(string $name): Store
    {
        [$kind, $place] = explode(' ', $name, 2) + [1 => ''];
        return match ($kind) {
            'memory' => new MemoryStore(),
            'sqlite' => new SQLiteStore($place),
            default => new DatabaseStore(static fn() => new \PDO($place)),
        };
    }

    /** The name of a store; skips the test, and says so, without its database. */
    public static function name(string $kind, string $directory): string
    {
        if (!isset(self::DATABASES[$kind])) {
            return "$kind $directory/store.db";
        }
        $dsn = getenv(self::DATABASES[$kind]);
        if ($dsn === false) {
            TestCase::markTestSkipped('no ' . self::DATABASES[$kind]);
        }
        return "$kind $dsn";
    }

    /**
     * Calls a method of the store in processes of their own, all at once.
     *
     * @param list<array<mixed>> $calls the arguments for each process
     * @return list<mixed> the results in their order
     */
    public static function race(string $name, string $method, array $calls): array
    {
        $workers = [];
        foreach ($calls as $arguments) {
            $worker = [PHP_BINARY, __DIR__ . '/store_worker.php'];
            $job = [$name, $method, base64_encode(serialize($arguments))];
            $pipes = [];
            $process = proc_open([...$worker, ...$job], [['pipe', 'r'], ['pipe', 'w']], $pipes);
            $workers[] = [$process, ...$pipes];
        }
        foreach ($workers as [, , $output]) {
            TestCase::assertSame("ready\n", fgets($output));
        }
        foreach ($workers as [, $input]) {
            fwrite($input, "go\n");
        }
        $results = [];
        foreach ($workers as [$process, , $output]) {
            $results[] = unserialize(stream_get_contents($output));
            proc_close($process);
        }
        return $results;
    }
}
