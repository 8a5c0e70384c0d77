<?php

declare(strict_types=1);

namespace Twoefay;

/** What a website requires of a login and its proof. The defaults are the strong form. */
final class Policy
{
    public const VERIFICATIONS = ['none', 'passcode', 'biometric'];
    public const PHONES = ['any', 'native', 'web'];
    public const ASSURANCES = ['low', 'restricted', 'substantial', 'high'];

    private const ORIGIN = '~\Ahttps://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?\z~';

    public const MOST_DIGITS = 6;

    /** No challenge lives longer, so a later approval was held back. */
    public const LONGEST_AGE = 600;

    /**
     * @param string|null $displayName the name that phones must show; null: the operator may rename
     *                                 the website
     * @param int         $leastDigits 0 only if the policy of the website needs no number: a
     *                                 dishonest relay could leave it out
     * @param bool        $allowUnpinned trust the relay for users of whom no phone was ever pinned
     * @param bool        $acceptCodes trust the relay's word that a code was right
     * @param string      $phones      the phones that `confirm` pins: any, native or web
     * @param string|null $appOrigin   the origin of the only web app whose phones `confirm` pins
     * @param list<string> $loginOrigins where users type their password
     */
    public function __construct(
        public readonly string $origin,
        public readonly string $website,
        public readonly ?string $displayName = null,
        public readonly string $leastUserVerification = 'none',
        public readonly ?int $longestVerificationAge = null,
        public readonly int $leastDigits = 2,
        public readonly bool $allowUnpinned = false,
        public readonly bool $acceptCodes = false,
        public readonly string $phones = 'any',
        public readonly ?string $appOrigin = null,
        public readonly array $loginOrigins = [],
    ) {
        // Phones sign the origin, so it must be exactly that of the relay's settings.
        if (preg_match(self::ORIGIN, $origin) !== 1) {
            throw new \InvalidArgumentException(
                'the origin must be like https://login.example.com:8080'
            );
        }
        if ($leastDigits < 0 || $leastDigits > self::MOST_DIGITS) { // no phone could answer
            throw new \InvalidArgumentException('leastDigits must be 0 to 6');
        }
        if (!in_array($leastUserVerification, self::VERIFICATIONS, true)) {
            throw new \InvalidArgumentException(
                'leastUserVerification must be none, passcode or biometric'
            );
        }
        $this->requirePhones();
    }

    private function requirePhones(): void
    {
        if (!in_array($this->phones, self::PHONES, true)) {
            throw new \InvalidArgumentException('phones must be any, native or web');
        }
        foreach ([...$this->loginOrigins, $this->appOrigin ?? 'https://x'] as $origin) {
            if (!WebPhone::isOrigin($origin)) {
                throw new \InvalidArgumentException(
                    'appOrigin and loginOrigins must be like https://shop.example.com, in small letters'
                );
            }
        }
        if ($this->appOrigin !== null && WebPhone::areOneHost($this->appOrigin, $this->origin)) {
            throw new \InvalidArgumentException(
                'appOrigin has the host of the relay, which could read k there'
            );
        }
    }

    /** The reason to refuse a phone with this app (null for a native phone), or null for none. */
    public function refusal(?string $app): ?string
    {
        if ($this->phones === ($app === null ? 'web' : 'native')) {
            return 'phone';
        }
        // The relay can read `k` in each page of its host.
        $isOther = $app !== null && (WebPhone::areOneHost($app, $this->origin)
            || ($this->appOrigin !== null && $app !== $this->appOrigin));
        return $isOther ? 'app' : null;
    }

    /**
     * Whether a web phone can be a second factor beside the website's own pages: an app at the host
     * where users type their password is none.
     */
    public function countsAsHigh(string $app): bool
    {
        foreach ($this->loginOrigins as $origin) {
            if (WebPhone::areOneHost($origin, $app)) {
                return false;
            }
        }
        return $this->loginOrigins !== [];
    }

    public function audience(): string
    {
        return "$this->origin#$this->website";
    }

    /** The website's name, from its certificate. */
    public static function websiteOf(string $certificate): string
    {
        $parsed = openssl_x509_parse((string) file_get_contents($certificate));
        $names = $parsed['extensions']['subjectAltName'] ?? '';
        if (preg_match('/\AURI:twoefay:website:([^\s,]+)\z/', $names, $found) !== 1) {
            throw new \InvalidArgumentException("$certificate is not the certificate of a website");
        }
        return $found[1];
    }
}
