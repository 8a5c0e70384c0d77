<?php

declare(strict_types=1);

namespace Twoefay;

/** What a website requires of a login and its proof. The defaults are the strong form. */
final class Policy
{
    public const VERIFICATIONS = ['none', 'passcode', 'biometric'];
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
