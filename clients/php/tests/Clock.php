<?php

declare(strict_types=1);

namespace Twoefay\Tests;

use Twoefay\World;

/** A clock that only moves when a pause moves it. */
final class Clock extends World
{
    /** @var list<float> */
    public array $pauses = [];

    /** What `random` returns, if it is set. */
    public ?string $bytes = null;

    public function __construct(public float $time = 1_795_334_400)
    {
    }

    public function now(): int
    {
        return (int) $this->time;
    }

    public function monotonic(): float
    {
        return $this->time;
    }

    public function random(int $bytes): string
    {
        return $this->bytes === null ? random_bytes($bytes) : substr($this->bytes, 0, $bytes);
    }

    public function pause(float $seconds): void
    {
        $this->pauses[] = $seconds;
        $this->time += $seconds;
    }
}
