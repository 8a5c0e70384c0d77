<?php

declare(strict_types=1);

namespace Twoefay\Tests;

/** Sessions in files without locks, as handlers for Redis have them by default. */
final class UnlockedSessions implements \SessionHandlerInterface
{
    public function __construct(private readonly string $directory)
    {
    }

    public function open(string $path, string $name): bool
    {
        return true;
    }

    public function close(): bool
    {
        return true;
    }

    public function read(string $id): string
    {
        return (string) @file_get_contents("$this->directory/sess_$id");
    }

    public function write(string $id, string $data): bool
    {
        return file_put_contents("$this->directory/sess_$id", $data) !== false;
    }

    public function destroy(string $id): bool
    {
        @unlink("$this->directory/sess_$id");
        return true;
    }

    public function gc(int $lifetime): int
    {
        return 0;
    }
}
