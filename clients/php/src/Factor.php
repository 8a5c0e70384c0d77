<?php

declare(strict_types=1);

namespace Twoefay;

/** A factor of a user. */
final class Factor
{
    /** @param string $kind push, pull, totp, hotp, sms, mail, recovery or operator */
    public function __construct(
        public readonly string $kind,
        public readonly string $state,
        public readonly ?string $address = null,
        public readonly ?string $device = null,
    ) {
    }
}
