<?php

declare(strict_types=1);

namespace Twoefay;

/** An event that a webhook brought. Ignore types that you do not know: the relay may add some. */
final class Event
{
    /** @param array<string, mixed> $data */
    public function __construct(
        public readonly string $id,
        public readonly string $type,
        public readonly string $timestamp,
        public readonly array $data,
    ) {
    }
}
