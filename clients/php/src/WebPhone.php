<?php

declare(strict_types=1);

namespace Twoefay;

/**
 * Phones whose app is a page in a browser.
 *
 * The binding of a web phone names the origin of the page, `app`, and, if the browser can check its
 * owner, a credential of WebAuthn. Both are pinned with the key. What the page says of its user
 * counts only with an assertion of that credential.
 */
final class WebPhone
{
    private const ORIGIN = '~\Ahttps://[a-z0-9.-]+(:[0-9]{1,5})?\z~';
    private const MOST_ORIGIN = 128;
    private const MOST_ID = 256;

    /** The least and the most bytes of each member of an assertion. */
    private const SIZES = [
        'authenticator_data' => [37, 1024],
        'client_data' => [1, 4096],
        'signature' => [1, 256],
    ];

    private const USER_PRESENT = 1;
    private const USER_VERIFIED = 4;

    /** Whether a value has the form of the origin of a web app. */
    public static function isOrigin(mixed $value): bool
    {
        return is_string($value) && strlen($value) <= self::MOST_ORIGIN
            && preg_match(self::ORIGIN, $value) === 1;
    }

    /**
     * Whether two origins have the same host. A browser reaches the same server by a name in
     * capitals, and by one with a dot at its end.
     */
    public static function areOneHost(string $one, string $other): bool
    {
        $plain = static fn(string $origin): string =>
            preg_replace('/\.\z/', '', strtolower(self::host($origin)));
        return $plain($one) === $plain($other);
    }

    /**
     * The further members of the pinned record; none for a native phone. Throws DomainException for
     * claims of another form.
     *
     * @return array<string, mixed>
     */
    public static function members(\stdClass $claims): array
    {
        $hasCredential = property_exists($claims, 'webauthn');
        if (!property_exists($claims, 'app')) {
            return $hasCredential ? throw new \DomainException('no app') : [];
        }
        if (!self::isOrigin($claims->app)) {
            throw new \DomainException('the app is not an origin');
        }
        $members = ['app' => $claims->app];
        return $hasCredential
            ? $members + ['webauthn' => self::credential($claims->webauthn, self::host($claims->app))]
            : $members;
    }

    /** @return array{rp: string, id: string, jwk: array<string, string>} */
    private static function credential(mixed $value, string $host): array
    {
        $rp = $value instanceof \stdClass ? $value->rp ?? null : null;
        $id = $value instanceof \stdClass ? $value->id ?? null : null;
        $isOfHost = is_string($rp) && $rp !== '' && ($rp === $host || str_ends_with($host, ".$rp"));
        if (!$isOfHost || !is_string($id) || $id === '' || strlen($id) > self::MOST_ID) {
            throw new \DomainException('not a credential of the app');
        }
        Base64Url::decode($id);
        return ['rp' => $rp, 'id' => $id, 'jwk' => PublicKey::jwk($value->jwk ?? null)];
    }

    /**
     * The user verification that counts. That of a web phone needs an assertion, which does not say
     * how the browser checked the owner: it counts as a passcode.
     *
     * @param array<string, mixed> $record    the pinned record of the phone
     * @param mixed                $assertion of the relay's answer
     */
    public static function verification(
        array $record,
        string $claimed,
        Jws $receipt,
        mixed $assertion,
    ): string {
        if (!isset($record['app']) || $claimed === 'none') {
            return $claimed;
        }
        return self::hasAsserted($record, $receipt, $assertion) ? 'passcode' : 'none';
    }

    /**
     * Whether an assertion of the phone's credential belongs to this receipt (WebAuthn Level 2,
     * 7.2). Further members are ignored.
     *
     * @param array<string, mixed> $record
     */
    private static function hasAsserted(array $record, Jws $receipt, mixed $assertion): bool
    {
        $credential = $record['webauthn'] ?? null;
        if ($credential === null) {
            return false;
        }
        try {
            // The data of a webhook has arrays in place of objects.
            [$authenticator, $client, $signature] = self::decoded(Json::arrays($assertion));
            $key = PublicKey::of($credential['jwk']);
            $isOfReceipt = self::isClientData(Json::object($client), $record['app'], $receipt);
        } catch (\DomainException) {
            return false;
        }
        $flags = ord($authenticator[32]);
        return $isOfReceipt
            && substr($authenticator, 0, 32) === hash('sha256', $credential['rp'], true)
            && ($flags & self::USER_PRESENT) !== 0
            && ($flags & self::USER_VERIFIED) !== 0
            && $key->hasSignedDer($authenticator . hash('sha256', $client, true), $signature);
    }

    /** @return list<string> the bytes of the members, in the order of SIZES */
    private static function decoded(mixed $assertion): array
    {
        $decoded = [];
        foreach (self::SIZES as $name => [$least, $most]) {
            $text = is_array($assertion) ? $assertion[$name] ?? null : null;
            $bytes = is_string($text) ? Base64Url::decode($text) : '';
            if (strlen($bytes) < $least || strlen($bytes) > $most) {
                throw new \DomainException("not an assertion: $name");
            }
            $decoded[] = $bytes;
        }
        return $decoded;
    }

    /** Whether the browser asserted this receipt, in the page of the phone's app. */
    private static function isClientData(\stdClass $client, string $app, Jws $receipt): bool
    {
        return ($client->type ?? null) === 'webauthn.get'
            && ($client->challenge ?? null) === Base64Url::encode($receipt->digest())
            && ($client->origin ?? null) === $app
            && (!property_exists($client, 'crossOrigin') || $client->crossOrigin === false)
            && !property_exists($client, 'topOrigin');
    }

    private static function host(string $origin): string
    {
        return preg_replace('~\Ahttps://|:[0-9]{1,5}\z~', '', $origin);
    }
}
