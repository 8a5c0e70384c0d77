<?php

declare(strict_types=1);

namespace Twoefay;

/** Base64url without padding. */
final class Base64Url
{
    public static function encode(#[\SensitiveParameter] string $bytes): string
    {
        return rtrim(strtr(base64_encode($bytes), '+/', '-_'), '=');
    }

    /** Each value has exactly one text; others throw DomainException. */
    public static function decode(#[\SensitiveParameter] string $text): string
    {
        // base64_decode skips spaces and takes two alphabets, so the result is written once more.
        $bytes = base64_decode(strtr($text, '-_', '+/'), true);
        if ($bytes === false || self::encode($bytes) !== $text) {
            throw new \DomainException('not base64url');
        }
        return $bytes;
    }
}
