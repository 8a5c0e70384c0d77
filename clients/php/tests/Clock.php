<?php

declare(strict_types=1);

namespace Twoefay\Tests;

use Twoefay\World;

/** A clock that only moves when a pause moves it. */
final class Clock extends World
{
    /** @var list<float> */
    public array $pauses = [];

    /** What `random` returns when it is asked for as many bytes. */
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
        $isChosen = $this->bytes !== null && strlen($this->bytes) === $bytes;
        return $isChosen ? $this->bytes : random_bytes($bytes);
    }

    public function pause(float $seconds): void
    {
        $this->pauses[] = $seconds;
        $this->time += $seconds;
    }
}
