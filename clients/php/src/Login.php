<?php

declare(strict_types=1);

namespace Twoefay;

/**
 * The website's own record of one login. Keep `toJson()` in the visitor's session until it ends.
 *
 * `check` compares the receipt with it. Only `challenge` comes from the relay, and `number` if the
 * website needs none (`leastDigits: 0`) and so chose none.
 */
final class Login
{
    /**
     * @param string|null          $number  show it to the visitor, who enters it on the phone; null
     *                                      if no phone can answer
     * @param array<string, mixed> $sent    the values that the phone must show
     * @param list<string>|null    $factors
     * @param list<string>         $missing
     */
    public function __construct(
        public readonly string $challenge,
        public readonly ?string $number,
        public readonly int $askedAt,
        public readonly array $sent,
        public readonly ?array $factors = null,
        public readonly ?string $minAssurance = null,
        public readonly ?string $factor = null,
        public readonly bool $hasPhone = true,
        public readonly bool $codesLocked = false,
        public readonly array $missing = [],
    ) {
    }

    public function username(): string
    {
        return $this->sent['username'];
    }

    public function request(): string
    {
        return $this->sent['request'];
    }

    /** @return array<string, mixed> an object of JSON, with the names of all languages */
    public function toJson(): array
    {
        return [
            'challenge' => $this->challenge,
            'number' => $this->number,
            'asked_at' => $this->askedAt,
            'sent' => $this->sent,
            'factors' => $this->factors,
            'min_assurance' => $this->minAssurance,
            'factor' => $this->factor,
            'has_phone' => $this->hasPhone,
            'codes_locked' => $this->codesLocked,
            'missing' => $this->missing,
        ];
    }

    /** @param array<string, mixed> $value */
    public static function fromJson(array $value): self
    {
        return new self(
            $value['challenge'],
            $value['number'] ?? null,
            $value['asked_at'],
            $value['sent'],
            $value['factors'] ?? null,
            $value['min_assurance'] ?? null,
            $value['factor'] ?? null,
            $value['has_phone'] ?? true,
            $value['codes_locked'] ?? false,
            $value['missing'] ?? [],
        );
    }
}
