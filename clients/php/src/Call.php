<?php

declare(strict_types=1);

namespace Twoefay;

/** One HTTP request to the relay. */
final class Call
{
    /**
     * @param array<string, mixed>|null $body    members of an object; null for no body
     * @param array<string, string>     $headers names are in lower case
     * @param int                       $hold    seconds for which the relay may hold the request
     */
    public function __construct(
        public readonly string $method,
        public readonly string $path,
        #[\SensitiveParameter] public readonly ?array $body = null,
        public array $headers = [],
        public readonly int $hold = 0,
    ) {
    }
}
