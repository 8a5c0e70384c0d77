<?php

declare(strict_types=1);

namespace Twoefay;

/** Texts from browsers and relays. Those of a browser are never a reason to refuse a login. */
final class Texts
{
    /** A number that the visitor enters on the phone. */
    public const NUMBER = '/\A[0-9]{2,6}\z/';

    /** An id that the relay chose. It can stand in a path and in every database. */
    public const ID = '/\A[A-Za-z0-9_-]{1,128}\z/';

    // Characters without a glyph: the categories of controls, formats, unassigned ones and
    // separators of lines, and Default_Ignorable_Code_Point as far as it is in other categories.
    private const HIDDEN = '/[\p{Cc}\p{Cf}\p{Cn}\p{Co}\p{Zl}\p{Zp}\x{34f}\x{115f}\x{1160}\x{17b4}'
        . '\x{17b5}\x{180b}-\x{180f}\x{3164}\x{fe00}-\x{fe0f}\x{ffa0}\x{e0100}-\x{e01ef}]+/u';

    /** The User-Agent as the relay accepts it; null if nothing of it is visible. */
    public static function browser(?string $userAgent): ?string
    {
        $text = $userAgent ?? '';
        if (preg_match('//u', $text) !== 1) {
            $text = preg_replace('/[^\x20-\x7e]+/', '', $text);
        }
        $text = self::trim(preg_replace(self::HIDDEN, '', $text) ?? '');
        preg_match('/\A.{0,512}/us', $text, $clipped);
        $text = self::trim($clipped[0] ?? '');
        return $text === '' ? null : $text;
    }

    /** The visitor's address in its short form; null if the text is no address. */
    public static function address(?string $ip): ?string
    {
        $bytes = filter_var($ip ?? '', FILTER_VALIDATE_IP) === false ? false : inet_pton($ip);
        if ($bytes === false) {
            return null;
        }
        $mapped = str_repeat("\0", 10) . "\xff\xff"; // a socket for both families maps IPv4 so
        return inet_ntop(str_starts_with($bytes, $mapped) ? substr($bytes, 12) : $bytes);
    }

    /** A field that selects the language of mails and texts; null if it is too long or no ASCII. */
    public static function language(?string $field): ?string
    {
        return preg_match('/\A[\x20-\x7e]{1,256}\z/', $field ?? '') === 1 ? $field : null;
    }

    /** A value as one segment of a path. HTTP clients resolve "." and "..": they cannot be sent. */
    public static function segment(string $value): string
    {
        if (in_array($value, ['', '.', '..'], true) || preg_match('//u', $value) !== 1) {
            throw new \InvalidArgumentException('the value cannot be a segment of a path');
        }
        return rawurlencode($value);
    }

    /** A path of this website; "/" for other texts: "//" and "/\" lead to other websites. */
    public static function localPath(string $path): string
    {
        return preg_match('{\A/(?![/\\\\])[!-~]*\z}', $path) === 1 ? $path : '/';
    }

    /** A text of the relay in one line of a log. */
    public static function oneLine(string $text): string
    {
        return preg_replace('/[^\x20-\x7e]+/', '?', substr($text, 0, 1000));
    }

    private static function trim(string $text): string
    {
        return preg_replace('/\A[\s\p{Zs}]+|[\s\p{Zs}]+\z/u', '', $text) ?? '';
    }
}
