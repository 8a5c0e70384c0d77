<?php

declare(strict_types=1);

namespace Twoefay;

/** An answer to the visitor's browser. */
final class Reply
{
    /** @param array<string, string> $headers */
    public function __construct(
        public readonly int $status,
        public readonly array $headers,
        public readonly string $body = '',
    ) {
    }

    public static function redirect(string $target): self
    {
        return new self(303, ['location' => $target, 'cache-control' => 'no-store']);
    }

    /** Answers the request of a plain PHP page. Nothing may be printed before or after it. */
    public function send(): void
    {
        http_response_code($this->status);
        foreach ($this->headers as $name => $value) {
            header("$name: $value");
        }
        echo $this->body;
    }
}
