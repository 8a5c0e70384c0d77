<?php

declare(strict_types=1);

namespace Twoefay;

/**
 * The check of a receipt: after it, the website need not trust the relay (receipts.md).
 *
 * Each fault has a stable word, in `ReceiptError::$reason`. Nothing here spends the request: the
 * caller does so last, so that a receipt that fails another check uses up nothing.
 */
final class ReceiptCheck
{
    private const MOST_BYTES = 65_536;

    /** The most that a code of each factor assures (docs/websites/api.md). */
    private const MOST_OF_CODE = [
        'totp' => 'substantial',
        'hotp' => 'substantial',
        'recovery' => 'substantial',
        'sms' => 'restricted',
        'mail' => 'low',
        'operator' => 'low',
    ];

    /** Members of the context that the relay adds. */
    private const OF_RELAY = ['place' => 0, 'device' => 0, 'created_at' => 0, 'expires_at' => 0];

    /** @param array<string, array<string, mixed>> $pins the pinned keys of this user by device */
    public function __construct(
        private readonly Policy $policy,
        private readonly Login $login,
        private readonly array $pins,
        private readonly bool $wasPinned,
        private readonly int $now,
    ) {
    }

    /**
     * Checks a success that the relay reports. Returns the receipt's claims, or null if a word of
     * the relay was accepted: a code, or the phone of a user of whom none was ever pinned. The `uv`
     * of the claims is the one that counts.
     */
    public function success(\stdClass $answer): ?\stdClass
    {
        $claims = $this->proved($answer);
        self::require(($answer->challenge ?? null) === $this->login->challenge, 'challenge');
        $this->checkStrength($answer);
        self::require($this->now - $this->login->askedAt <= Policy::LONGEST_AGE, 'age');
        return $claims;
    }

    /** The assurance of a checked success: `high` does not count for each web phone. */
    public function assurance(\stdClass $answer): ?string
    {
        $word = is_string($answer->assurance ?? null) ? $answer->assurance : null;
        $isReceipt = ($answer->proof ?? null) === 'signed' && is_string($answer->device ?? null);
        $app = $isReceipt ? $this->pins[$answer->device]['app'] ?? null : null;
        $isLess = $word === 'high' && $app !== null && !$this->policy->countsAsHigh($app);
        return $isLess ? 'substantial' : $word;
    }

    private function proved(\stdClass $answer): ?\stdClass
    {
        $proof = $answer->proof ?? null;
        // An unpinned phone counts as well: the relay reports the unbinding of phones.
        $trustsPhones = $this->policy->allowUnpinned && !$this->wasPinned && $this->pins === [];
        if ($proof === 'code' && $this->policy->acceptCodes) {
            return null;
        }
        if ($trustsPhones && in_array($proof, ['signed', 'certificate', 'website'], true)) {
            return null;
        }
        self::require($proof === 'signed', 'not_signed');
        return $this->receipt($answer);
    }

    /** The relay's word, but an honest one must not be weaker than the website asked. */
    private function checkStrength(\stdClass $answer): void
    {
        $factor = $answer->factor ?? null;
        $isCode = ($answer->proof ?? null) === 'code';
        if ($isCode) {
            self::require(is_string($factor) && isset(self::MOST_OF_CODE[$factor]), 'factor');
        }
        if ($this->login->factors !== null) {
            $used = $factor === 'pull' ? 'push' : $factor;
            self::require(in_array($used, $this->login->factors, true), 'factor');
        }
        $rank = self::rank(Policy::ASSURANCES, $this->assurance($answer));
        if ($isCode) {
            $most = self::rank(Policy::ASSURANCES, self::MOST_OF_CODE[$factor]);
            self::require($rank === null || $rank <= $most, 'assurance');
        }
        if ($this->login->minAssurance !== null) {
            $least = self::rank(Policy::ASSURANCES, $this->login->minAssurance);
            self::require($rank !== null && $least !== null && $rank >= $least, 'assurance');
        }
    }

    /** The steps 1 to 11 of receipts.md. Returns the claims. */
    private function receipt(\stdClass $answer): \stdClass
    {
        $device = $answer->device ?? null;
        $receipt = $answer->receipt ?? null;
        $context = $answer->context ?? null;
        $areTexts = is_string($device) && is_string($receipt) && is_string($context);
        self::require($areTexts, 'incomplete');
        self::require(isset($this->pins[$device]), 'unknown_device');
        $phone = $this->pins[$device];
        [$jws, $claims] = self::signed($receipt, $phone);
        self::require($claims->aud === $this->policy->audience(), 'audience');
        self::require(($jws->header->kid ?? null) === $device, 'device');
        self::require($claims->decision === 'approve', 'decision');
        $request = $this->login->request();
        self::require($request !== '' && ($claims->request ?? null) === $request, 'request');
        self::require(($claims->number ?? null) === $this->login->number, 'number');
        $this->checkContext($context, $claims->context);
        self::require($claims->challenge === $this->login->challenge, 'challenge');
        $assertion = $answer->webauthn ?? null;
        $claims->uv = WebPhone::verification($phone, $claims->uv, $jws, $assertion);
        $this->checkVerification($claims);
        self::require(strlen($this->login->number ?? '') >= $this->policy->leastDigits, 'digits');
        return $claims;
    }

    /**
     * @param array<string, mixed> $jwk
     * @return array{Jws, \stdClass} the receipt and its claims
     */
    private static function signed(string $receipt, array $jwk): array
    {
        try {
            $jws = Jws::parse($receipt, 'ES256');
        } catch (\DomainException) {
            throw new ReceiptError('malformed');
        }
        self::require($jws->isSignedBy(PublicKey::of($jwk)), 'signature');
        self::require(($jws->header->typ ?? null) === 'twoefay-decision+jwt', 'type');
        try {
            $claims = Json::object($jws->payload);
        } catch (\DomainException) {
            throw new ReceiptError('claims');
        }
        self::require(self::areClaims($claims), 'claims');
        return [$jws, $claims];
    }

    private static function areClaims(\stdClass $claims): bool
    {
        foreach (['aud', 'challenge', 'decision', 'nonce', 'context', 'uv'] as $name) {
            if (!is_string($claims->{$name} ?? null)) {
                return false;
            }
        }
        foreach (['request', 'number'] as $name) { // a text or absent: 7 is not the text "07"
            if (property_exists($claims, $name) && !is_string($claims->{$name})) {
                return false;
            }
        }
        return ($claims->v ?? null) === 1
            && in_array($claims->uv, Policy::VERIFICATIONS, true)
            && is_int($claims->iat ?? null)
            && (!property_exists($claims, 'uv_age') || is_int($claims->uv_age));
    }

    private function checkVerification(\stdClass $claims): void
    {
        $least = self::rank(Policy::VERIFICATIONS, $this->policy->leastUserVerification);
        $rank = self::rank(Policy::VERIFICATIONS, $claims->uv);
        self::require($rank >= $least, 'user_verification');
        $longest = $this->policy->longestVerificationAge;
        if ($longest !== null) {
            $age = $claims->uv_age ?? -1;
            $isRecent = $claims->uv !== 'none' && $age >= 0 && $age <= $longest;
            self::require($isRecent, 'user_verification_age');
        }
    }

    /** The phone showed exactly what the website sent, and nothing else. */
    private function checkContext(string $context, string $digest): void
    {
        try {
            $bytes = Base64Url::decode($context);
        } catch (\DomainException) {
            throw new ReceiptError('context');
        }
        self::require(strlen($bytes) <= self::MOST_BYTES, 'context');
        $own = Base64Url::encode(hash('sha256', $bytes, true));
        self::require($own === $digest, 'context_digest');
        try {
            $shown = Json::object($bytes);
        } catch (\DomainException) {
            throw new ReceiptError('context');
        }
        $expected = $this->login->sent + [
            'v' => 1,
            'website' => $this->policy->website,
            'number_digits' => strlen($this->login->number ?? ''),
            // The operator may rename a website: its name counts only if the website demands one.
            'display_name' => $this->policy->displayName ?? $shown->display_name ?? null,
        ];
        $seen = array_diff_key(get_object_vars($shown), self::OF_RELAY);
        foreach ([...array_keys($expected), ...array_keys($seen)] as $name) {
            $isSame = array_key_exists($name, $seen) && array_key_exists($name, $expected)
                && self::isSame($seen[$name], $expected[$name]);
            self::require($isSame, 'field', (string) $name);
        }
    }

    /** Compares a value of JSON with the website's own, whose objects are arrays with names. */
    private static function isSame(mixed $seen, mixed $own): bool
    {
        if (!is_array($own)) {
            return $seen === $own;
        }
        if (array_is_list($own) ? !is_array($seen) : !$seen instanceof \stdClass) {
            return false;
        }
        $seen = (array) $seen;
        if (count($seen) !== count($own)) {
            return false;
        }
        foreach ($own as $name => $value) {
            if (!array_key_exists($name, $seen) || !self::isSame($seen[$name], $value)) {
                return false;
            }
        }
        return true;
    }

    /**
     * The place of a word in a scale; null if it is none of it. (array_search returns false, which
     * compares as 0.)
     *
     * @param list<string> $scale
     */
    private static function rank(array $scale, mixed $word): ?int
    {
        $rank = array_search($word, $scale, true);
        return $rank === false ? null : $rank;
    }

    private static function require(bool $holds, string $reason, ?string $field = null): void
    {
        if (!$holds) {
            throw new ReceiptError($reason, $field);
        }
    }
}
