<?php

declare(strict_types=1);

namespace Twoefay\Tests;

use Twoefay\Base64Url;
use Twoefay\Login;

/** A phone in a browser, with a credential of WebAuthn, and what the relay says of it. */
final class WebPhone
{
    public const APP = 'https://phone.example.com';
    public const AUDIENCE = 'https://login.example.com:8080#shop';
    public const TIME = 1_795_334_400;

    private const SHOWN = '{"v":1,"website":"shop","display_name":"Shop","username":"ada",'
        . '"request":"r1","number_digits":2}';

    private \OpenSSLAsymmetricKey $key;
    private \OpenSSLAsymmetricKey $credential;

    public function __construct()
    {
        $kind = ['private_key_type' => OPENSSL_KEYTYPE_EC, 'curve_name' => 'prime256v1'];
        $this->key = openssl_pkey_new($kind);
        $this->credential = openssl_pkey_new($kind);
    }

    /** @return array<string, string> the key alone, as a native phone is pinned */
    public function jwk(): array
    {
        return KeysTest::jwk($this->key);
    }

    /** @return array<string, mixed> the record of this phone */
    public function record(): array
    {
        return $this->jwk() + ['app' => self::APP, 'webauthn' => $this->webauthn()];
    }

    /** @return array<string, mixed> */
    public function webauthn(): array
    {
        return ['rp' => 'example.com', 'id' => 'aWQ', 'jwk' => KeysTest::jwk($this->credential)];
    }

    public static function login(?string $minAssurance = null): Login
    {
        $sent = ['username' => 'ada', 'request' => 'r1'];
        return new Login('cccc', '47', self::TIME, $sent, minAssurance: $minAssurance);
    }

    /** @return array<string, mixed> the relay's answer about a user, with this binding */
    public function user(string $k, array $claims): array
    {
        $claims += ['v' => 1, 'aud' => self::AUDIENCE, 'id_token' => 't', 'jwk' => $this->jwk()];
        $text = Base64Url::encode('{"alg":"HS256","typ":"twoefay-binding+jwt"}') . '.'
            . Base64Url::encode(json_encode($claims));
        $binding = "$text." . Base64Url::encode(hash_hmac('sha256', $text, $k, true));
        $device = ['device' => 'd1', 'state' => 'active', 'jwk' => $this->jwk(), 'binding' => $binding];
        return ['token' => 't', 'devices' => [$device], 'factors' => []];
    }

    /** @return array<string, mixed> an approval, as the relay reports it */
    public function approval(array $claims = []): array
    {
        $claims += [
            'v' => 1,
            'aud' => self::AUDIENCE,
            'challenge' => 'cccc',
            'decision' => 'approve',
            'nonce' => 'n',
            'context' => Base64Url::encode(hash('sha256', self::SHOWN, true)),
            'uv' => 'biometric',
            'uv_age' => 3,
            'iat' => 1,
            'request' => 'r1',
            'number' => '47',
        ];
        $header = '{"alg":"ES256","typ":"twoefay-decision+jwt","kid":"d1"}';
        return [
            'login' => 'success',
            'proof' => 'signed',
            'factor' => 'push',
            'assurance' => 'high',
            'challenge' => 'cccc',
            'device' => 'd1',
            'context' => Base64Url::encode(self::SHOWN),
            'receipt' => KeysTest::sign($this->key, $header, json_encode($claims)),
        ];
    }

    /** @return array<string, mixed> an approval with the assertion over it */
    public function proved(array $claims = []): array
    {
        $approval = $this->approval($claims);
        return $approval + ['webauthn' => $this->assertion($approval['receipt'])];
    }

    /**
     * The assertion over a receipt.
     *
     * @param array<string, mixed> $client changes of the client data; null removes a member
     * @return array<string, string>
     */
    public function assertion(
        string $receipt,
        array $client = [],
        string $rp = 'example.com',
        int $flags = 5,
        string $further = '',
        ?string $data = null,
    ): array {
        $signed = substr($receipt, 0, strrpos($receipt, '.'));
        $client += [
            'type' => 'webauthn.get',
            'challenge' => Base64Url::encode(hash('sha256', $signed, true)),
            'origin' => self::APP,
            'crossOrigin' => false,
        ];
        $data ??= json_encode(array_filter($client, fn(mixed $value) => $value !== null));
        $authenticator = hash('sha256', $rp, true) . chr($flags) . "\0\0\0\7" . $further;
        openssl_sign($authenticator . hash('sha256', $data, true), $signature, $this->credential, 'sha256');
        return [
            'authenticator_data' => Base64Url::encode($authenticator),
            'client_data' => Base64Url::encode($data),
            'signature' => Base64Url::encode($signature),
        ];
    }
}
