<?php

declare(strict_types=1);

namespace Twoefay;

/**
 * The check of a phone's binding: it pins the phone's key without trust in the relay.
 *
 * The website adds a secret `k` to the activation URI and draws the QR code itself, so the relay
 * never sees `k`. The phone makes an HMAC with it over its own key.
 */
final class BindingCheck
{
    /** @param list<string> $secrets the `k`s of the user's open enrolments */
    public function __construct(
        private readonly Policy $policy,
        private readonly string $token,
        #[\SensitiveParameter] private readonly array $secrets,
    ) {
    }

    /**
     * Checks an entry of `devices[]` under each open secret.
     *
     * @return array{array<string, mixed>, string} the record to pin, and its `k`
     */
    public function key(\stdClass $device): array
    {
        $binding = $device->binding ?? null;
        self::require(is_string($binding), 'incomplete');
        try {
            $jws = Jws::parse($binding, 'HS256');
        } catch (\DomainException) {
            throw new BindingError('malformed');
        }
        $used = $this->secretOf($jws) ?? throw new BindingError('code');
        self::require(($jws->header->typ ?? null) === 'twoefay-binding+jwt', 'type');
        try {
            $claims = Json::object($jws->payload);
            $key = PublicKey::jwk($claims->jwk ?? null);
            $hasAgreement = property_exists($claims, 'agreement');
            $agreement = $hasAgreement ? PublicKey::jwk($claims->agreement) : null;
            $further = WebPhone::members($claims);
        } catch (\DomainException) {
            throw new BindingError('claims');
        }
        self::require(($claims->v ?? null) === 1, 'claims');
        self::require(($claims->aud ?? null) === $this->policy->audience(), 'audience');
        self::require(($claims->id_token ?? null) === $this->token, 'token');
        $refusal = $this->policy->refusal($further['app'] ?? null);
        $refusal === null ?: throw new BindingError($refusal);
        // Secrets are sealed to `agreement`, so the relay must name the one that the phone names.
        $isReported = self::reported($device, 'jwk') === $key
            && self::reported($device, 'agreement') === $agreement;
        self::require($isReported, 'key');
        return [$key + $further, $used];
    }

    private function secretOf(Jws $jws): ?string
    {
        foreach ($this->secrets as $k) {
            if ($jws->isMadeWith($k)) {
                return $k;
            }
        }
        return null;
    }

    /** @return array<string, string>|null the key that the relay reports, outside the binding */
    private static function reported(\stdClass $device, string $name): ?array
    {
        try {
            return isset($device->{$name}) ? PublicKey::jwk($device->{$name}) : null;
        } catch (\DomainException) {
            throw new BindingError('key');
        }
    }

    private static function require(bool $holds, string $reason): void
    {
        if (!$holds) {
            throw new BindingError($reason);
        }
    }
}
