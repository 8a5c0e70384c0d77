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

    public function pause(float $seconds): void
    {
        usleep((int) ceil($seconds * 1e6));
    }
}
