<?php

declare(strict_types=1);

namespace Twoefay;

/**
 * How a login stands. Let the user in only if `approved` is true: then the proof was checked.
 *
 * In PHP every object is true, so `if ($relay->wait($login))` would let in everybody.
 */
final class Decision
{
    public readonly bool $approved;
    public readonly bool $ended;

    /**
     * @param string               $state  `approved`, `denied` or `open`
     * @param string|null          $reason why it was denied: `denied`, `fraud`, `expired`, …; null
     *                                     after a wrong code
     * @param string|null          $assurance the relay's word; `high` becomes `substantial` for a
     *                                     web phone that may not count as `high` (`loginOrigins`)
     * @param string|null          $userVerification the phone's own word, from the checked receipt.
     *                                     That of a web phone counts only with an assertion of
     *                                     WebAuthn, and then as `passcode`
     * @param array<string, mixed> $answer the relay's answer, unchecked but for what is above
     */
    public function __construct(
        public readonly string $state,
        public readonly ?string $reason = null,
        public readonly ?string $factor = null,
        public readonly ?string $proof = null,
        public readonly ?string $assurance = null,
        public readonly ?string $device = null,
        public readonly ?string $userVerification = null,
        public readonly array $answer = [],
    ) {
        $this->approved = $state === 'approved';
        $this->ended = $state !== 'open';
    }
}
