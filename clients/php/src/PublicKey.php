<?php

declare(strict_types=1);

namespace Twoefay;

/** A public key of P-256, as JWK (RFC 7517) outside and as OpenSSL takes it inside. */
final class PublicKey
{
    private const MEMBERS = ['kty', 'crv', 'x', 'y'];

    /** SubjectPublicKeyInfo of a point of P-256, up to the mark of an uncompressed point. */
    private const DER_START = '3059301306072a8648ce3d020106082a8648ce3d03010703420004';

    private function __construct(private readonly \OpenSSLAsymmetricKey $key)
    {
    }

    /**
     * The four members of a JWK, without any others. Throws DomainException unless they are a point
     * of the curve.
     *
     * @return array{kty: string, crv: string, x: string, y: string}
     */
    public static function jwk(mixed $value): array
    {
        if (!$value instanceof \stdClass) {
            throw new \DomainException('not a key');
        }
        $jwk = [];
        foreach (self::MEMBERS as $name) {
            if (!is_string($value->{$name} ?? null)) {
                throw new \DomainException('the key lacks members');
            }
            $jwk[$name] = $value->{$name};
        }
        self::of($jwk);
        return $jwk;
    }

    /** @param array{kty: string, crv: string, x: string, y: string} $jwk */
    public static function of(array $jwk): self
    {
        if ($jwk['kty'] !== 'EC' || $jwk['crv'] !== 'P-256') {
            throw new \DomainException('not a key of P-256');
        }
        [$x, $y] = [Base64Url::decode($jwk['x']), Base64Url::decode($jwk['y'])];
        if (strlen($x) !== 32 || strlen($y) !== 32) {
            throw new \DomainException('not a point of P-256');
        }
        $der = base64_encode(hex2bin(self::DER_START) . $x . $y);
        $lines = chunk_split($der, 64, "\n");
        $key = openssl_pkey_get_public(
            "-----BEGIN PUBLIC KEY-----\n$lines-----END PUBLIC KEY-----\n"
        );
        if ($key === false) { // OpenSSL checks the equation of the curve
            self::forgetErrors();
            throw new \DomainException('not a point of P-256');
        }
        return new self($key);
    }

    /** Whether this key signed the text: ES256, with r and s one after the other (RFC 7518). */
    public function hasSigned(string $text, string $signature): bool
    {
        if (strlen($signature) !== 64) {
            return false;
        }
        $integers = implode(array_map(self::integer(...), str_split($signature, 32)));
        return $this->hasSignedDer($text, "\x30" . chr(strlen($integers)) . $integers);
    }

    /** The same for a signature in DER, as WebAuthn has it. */
    public function hasSignedDer(string $text, string $der): bool
    {
        $result = openssl_verify($text, $der, $this->key, OPENSSL_ALGO_SHA256);
        if ($result !== 1) { // 0 for another signature, -1 or false for an error
            self::forgetErrors();
        }
        return $result === 1;
    }

    /** An INTEGER of DER: without leading zeros, but with one if the first bit would be a sign. */
    private static function integer(string $bytes): string
    {
        $bytes = ltrim($bytes, "\0");
        if ($bytes === '' || ord($bytes[0]) > 0x7f) {
            $bytes = "\0" . $bytes;
        }
        return "\x02" . chr(strlen($bytes)) . $bytes;
    }

    /** OpenSSL queues its errors, and others would find ours. */
    private static function forgetErrors(): void
    {
        while (openssl_error_string() !== false) {
        }
    }
}
