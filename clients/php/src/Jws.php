<?php

declare(strict_types=1);

namespace Twoefay;

/**
 * A compact JWS with one fixed algorithm. The header never chooses it: that is how `none` gets in.
 *
 * Read no claim before `isSignedBy` or `isMadeWith` has returned true.
 */
final class Jws
{
    private function __construct(
        public readonly \stdClass $header,
        public readonly string $payload,
        private readonly string $signed,
        private readonly string $signature,
    ) {
    }

    /** Throws DomainException for every other text than a JWS with this algorithm. */
    public static function parse(string $token, string $algorithm): self
    {
        $parts = explode('.', $token, 4);
        if (count($parts) !== 3) {
            throw new \DomainException('not a compact JWS');
        }
        [$head, $payload, $signature] = array_map(Base64Url::decode(...), $parts);
        $header = Json::object($head);
        if (($header->alg ?? null) !== $algorithm) {
            throw new \DomainException("the algorithm is not $algorithm");
        }
        if (property_exists($header, 'crit')) {
            throw new \DomainException('the header demands an unknown extension');
        }
        if ($signature === '' || ($algorithm === 'ES256' && strlen($signature) !== 64)) {
            throw new \DomainException('the signature has another length');
        }
        return new self($header, $payload, "$parts[0].$parts[1]", $signature);
    }

    /** The SHA-256 of what is signed. */
    public function digest(): string
    {
        return hash('sha256', $this->signed, true);
    }

    public function isSignedBy(PublicKey $key): bool
    {
        return $key->hasSigned($this->signed, $this->signature);
    }

    public function isMadeWith(#[\SensitiveParameter] string $key): bool
    {
        // HMAC takes a key of any length. A short one can be guessed, so it proves nothing.
        return strlen($key) >= 32
            && hash_equals(hash_hmac('sha256', $this->signed, $key, true), $this->signature);
    }
}
