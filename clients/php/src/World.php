<?php

declare(strict_types=1);

namespace Twoefay;

/** Time and randomness. Tests replace them. */
class World
{
    /** Seconds since 1970. */
    public function now(): int
    {
        return time();
    }

    /** Seconds of a clock that nobody sets. */
    public function monotonic(): float
    {
        return hrtime(true) / 1e9;
    }

    public function random(int $bytes): string
    {
        return random_bytes($bytes);
    }

    /** Random digits, each number as likely as another. */
    public function digits(int $count): string
    {
        return sprintf("%0{$count}d", random_int(0, 10 ** $count - 1));
    }

    public function pause(float $seconds): void
    {
        usleep((int) ceil($seconds * 1e6));
    }
}
