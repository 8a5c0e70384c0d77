<?php

declare(strict_types=1);

namespace Twoefay;

/**
 * Strict reading of JSON: what two parsers could read differently is refused.
 *
 * Objects become stdClass and lists become arrays. As arrays both would be one in PHP, and an
 * object where a list belongs would read as a list without entries.
 */
final class Json
{
    /**
     * A value takes up to 140 times the memory of its text, and PHP ends a request with more than
     * 128 MB. Answers of a relay have some kilobytes.
     */
    public const MOST_BYTES = 1 << 19;

    private const DEPTH = 32;

    /** PHP's hash of texts has no seed: thousands of names that collide would cost seconds. */
    private const MOST_NAMES = 500;

    /** Anything up to the next brace, or a text, and whether that is the name of a member. */
    private const TOKEN = '/\G[^"{}]*+(?:([{}])|("(?:[^"\\\\]++|\\\\.)*+")([ \t\r\n]*+:)?)/s';

    /** Throws DomainException for other values than an object, and for unclear or many names. */
    public static function object(string $text): \stdClass
    {
        if (strlen($text) > self::MOST_BYTES) {
            throw new \DomainException('too long');
        }
        try {
            self::requireFewUniqueNames($text);
            $value = json_decode($text, false, self::DEPTH, JSON_THROW_ON_ERROR);
        } catch (\JsonException $error) {
            throw new \DomainException($error->getMessage(), 0, $error);
        }
        return $value instanceof \stdClass ? $value : throw new \DomainException('not an object');
    }

    /** The body of a request. A text that is not UTF-8 is a fault of the caller. */
    public static function write(array $members): string
    {
        $flags = JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE;
        try {
            return json_encode((object) $members, $flags);
        } catch (\JsonException $error) {
            throw new \InvalidArgumentException($error->getMessage(), 0, $error);
        }
    }

    /** A value with arrays in place of objects, as PHP programs expect it. */
    public static function arrays(mixed $value): mixed
    {
        if ($value instanceof \stdClass) {
            $value = get_object_vars($value);
        }
        return is_array($value) ? array_map(self::arrays(...), $value) : $value;
    }

    /**
     * json_decode keeps the last of two members with one name, and does not tell. A text before a
     * colon is a name of the innermost open object, up to the first fault of the JSON. There
     * json_decode ends, too.
     */
    private static function requireFewUniqueNames(string $text): void
    {
        $open = [];
        $at = 0;
        while (preg_match(self::TOKEN, $text, $found, 0, $at) === 1) {
            $at += strlen($found[0]);
            if ($found[1] === '{') {
                $open[] = [];
                if (count($open) > self::DEPTH) {
                    throw new \DomainException('too deep');
                }
            } elseif ($found[1] === '}') {
                array_pop($open);
            } elseif (isset($found[3])) {
                $name = json_decode($found[2], false, 1, JSON_THROW_ON_ERROR);
                $innermost = array_key_last($open) ?? throw new \DomainException('no object is open');
                if (isset($open[$innermost]["=$name"])) { // "=": PHP makes "1" an integer
                    throw new \DomainException('a name occurs twice');
                }
                $open[$innermost]["=$name"] = true;
                if (count($open[$innermost]) > self::MOST_NAMES) {
                    throw new \DomainException('an object has too many names');
                }
            }
        }
        if (strpbrk(substr($text, $at), '"{}') !== false) {
            throw new \DomainException('the names cannot be compared');
        }
    }
}
