<?php

declare(strict_types=1);

namespace Twoefay\Tests;

use PHPUnit\Framework\TestCase;
use Twoefay\Base64Url;
use Twoefay\Jws;
use Twoefay\PublicKey;

/** JWS and JWK, as OpenSSL takes them. */
final class KeysTest extends TestCase
{
    public function testSignaturesOfOpenSslAreAccepted(): void
    {
        for ($i = 0; $i < 200; $i++) { // among them, numbers with leading zeros and first bits
            [$jwk, $token] = self::signed();
            $jws = Jws::parse($token, 'ES256');
            self::assertTrue($jws->isSignedBy(PublicKey::of($jwk)));
            [$other] = self::signed();
            self::assertFalse($jws->isSignedBy(PublicKey::of($other)));
        }
        self::assertFalse(openssl_error_string());
    }

    /** @dataProvider lengths */
    public function testSignatureOfAnotherLengthIsNone(string $signature): void
    {
        [$jwk] = self::signed();
        self::assertFalse(PublicKey::of($jwk)->hasSigned('text', $signature));
    }

    public static function lengths(): array
    {
        $zeros = fn(int $count) => [str_repeat("\0", $count)];
        return [$zeros(0), $zeros(63), $zeros(64), $zeros(65), [str_repeat("\xff", 64)]];
    }

    /** @dataProvider oddKeys */
    public function testOddKeyIsRefused(mixed $key): void
    {
        $this->expectException(\DomainException::class);
        PublicKey::jwk($key);
    }

    public static function oddKeys(): array
    {
        [$jwk] = self::signed();
        $zero = Base64Url::encode(str_repeat("\0", 32));
        $odd = [
            ['kty' => 'RSA'], ['crv' => 'P-384'], ['crv' => 'p-256'], ['x' => 7], ['x' => null],
            ['x' => ''], ['x' => $jwk['x'] . '='], ['x' => $jwk['x'] . "\n"],
            ['x' => Base64Url::encode("\0" . Base64Url::decode($jwk['x']))],
            ['x' => substr($jwk['x'], 0, 42)], ['x' => $zero, 'y' => $zero],
            ['y' => Base64Url::encode(str_repeat("\xff", 32))], ['y' => $jwk['x']],
        ];
        $keys = array_map(fn(array $change) => [(object) ($change + $jwk)], $odd);
        return [...$keys, [null], ['x'], [[]], [new \stdClass()], [(array) $jwk]];
    }

    public function testFurtherMembersAreLeftOut(): void
    {
        [$jwk] = self::signed();
        self::assertSame($jwk, PublicKey::jwk((object) ($jwk + ['d' => 'x', 'kid' => 'y'])));
    }

    /** @dataProvider oddTexts */
    public function testEachValueHasOneText(string $text): void
    {
        $this->expectException(\DomainException::class);
        Base64Url::decode($text);
    }

    public static function oddTexts(): array
    {
        return [['QQ=='], ['QR'], ['Q'], ['+/8'], ["QQ\n"], [' QQ'], ['Q Q'], ['QQ=', 'é'], ["QQ\0"]];
    }

    public function testOnlyThreePartsAreAJws(): void
    {
        [, $token] = self::signed();
        foreach (['', '..', '.', "$token.", "$token.x", "x.$token", substr($token, 1)] as $other) {
            try {
                Jws::parse($other, 'ES256');
                self::fail("$other is a JWS");
            } catch (\DomainException) {
                $this->addToAssertionCount(1);
            }
        }
    }

    public function testShortSecretProvesNothing(): void
    {
        foreach ([0, 31, 32] as $length) {
            $k = str_repeat('k', $length);
            $head = Base64Url::encode('{"alg":"HS256"}') . '.' . Base64Url::encode('{}');
            $tag = Base64Url::encode(hash_hmac('sha256', $head, $k, true));
            self::assertSame($length >= 32, Jws::parse("$head.$tag", 'HS256')->isMadeWith($k));
        }
    }

    /** @return array{array<string, string>, string} a key, and a JWS that it signed */
    private static function signed(): array
    {
        $kind = ['private_key_type' => OPENSSL_KEYTYPE_EC, 'curve_name' => 'prime256v1'];
        $key = openssl_pkey_new($kind);
        return [self::jwk($key), self::sign($key, '{"alg":"ES256"}', '{}')];
    }

    /** @return array{kty: string, crv: string, x: string, y: string} */
    public static function jwk(\OpenSSLAsymmetricKey $key): array
    {
        $ec = openssl_pkey_get_details($key)['ec'];
        $point = fn(string $name) => Base64Url::encode(self::padded($ec[$name]));
        return ['kty' => 'EC', 'crv' => 'P-256', 'x' => $point('x'), 'y' => $point('y')];
    }

    public static function sign(\OpenSSLAsymmetricKey $key, string $header, string $claims): string
    {
        $text = Base64Url::encode($header) . '.' . Base64Url::encode($claims);
        openssl_sign($text, $der, $key, OPENSSL_ALGO_SHA256);
        $r = substr($der, 4, ord($der[3]));
        $s = substr($der, 6 + ord($der[3]));
        return "$text." . Base64Url::encode(self::padded($r) . self::padded($s));
    }

    private static function padded(string $integer): string
    {
        return str_pad(ltrim($integer, "\0"), 32, "\0", STR_PAD_LEFT);
    }
}
