<?php

declare(strict_types=1);

namespace Twoefay\Tests;

/** What a browser received. */
final class Received
{
    public function __construct(
        public readonly int $status,
        private readonly string $head,
        public readonly string $body,
    ) {
    }

    /** @return list<string> all fields with this name */
    public function all(string $name): array
    {
        preg_match_all('/^' . preg_quote($name) . ': (.*?)\r$/im', $this->head, $found);
        return $found[1];
    }

    public function field(string $name): ?string
    {
        return $this->all($name)[0] ?? null;
    }

    /** @return array<string, string> the fields of the form that have a value */
    public function form(): array
    {
        preg_match_all('/<input [^>]*name="([^"]+)" value="([^"]+)"/', $this->body, $found);
        return array_combine($found[1], array_map(htmlspecialchars_decode(...), $found[2]));
    }
}
