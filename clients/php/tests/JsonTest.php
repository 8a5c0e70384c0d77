<?php

declare(strict_types=1);

namespace Twoefay\Tests;

use PHPUnit\Framework\TestCase;
use Twoefay\Json;

/** Texts that two parsers could read differently, and those that cost more than their size. */
final class JsonTest extends TestCase
{
    /** @dataProvider unclear */
    public function testUnclearTextIsRefused(string $text): void
    {
        $this->expectException(\DomainException::class);
        Json::object($text);
    }

    public static function unclear(): array
    {
        return [
            'list' => ['[]'],
            'text' => ['"a"'],
            'empty' => [''],
            'twice' => ['{"a":1,"a":1}'],
            'twice, apart' => ['{"a":1,"b":{"c":[]},"a":1}'],
            'twice, with a space' => ["{\"a\" :1,\"a\"\n:1}"],
            'twice, escaped' => ['{"a":1,"\u0061":1}'],
            'twice, as numbers' => ['{"1":1,"1":1}'],
            'twice, empty' => ['{"":1,"":1}'],
            'twice, inside' => ['{"a":[{"b":1,"b":2}]}'],
            'twice, after a brace in a text' => ['{"a":"}{","a":1}'],
            'twice, after an escaped quote' => ['{"a":"\"","a":1}'],
            'half a character' => ['{"a":"\ud800"}'],
            'other half' => ['{"a":"\udc00"}'],
            'not UTF-8' => ["{\"a\":\"\xff\"}"],
            'mark of byte order' => ["\u{feff}{}"],
            'capital' => ['{"a":True}'],
            'no number' => ['{"a":NaN}'],
            'comma' => ['{"a":1,}'],
            'comment' => ['{} // x'],
            'two values' => ['{}{}'],
            'long' => ['{"a":"' . str_repeat('a', Json::MOST_BYTES) . '"}'],
            'name without an object' => ['"a":1'],
            'name after an object' => ['{"a":1}"b":1'],
            'name that is no text' => ['{"\ud800":1}'],
            'deep objects' => [str_repeat('{"a":', 40) . '0' . str_repeat('}', 40)],
            'deep' => ['{"a":' . str_repeat('[', 40) . str_repeat(']', 40) . '}'],
        ];
    }

    public function testSameNameInOtherObjectsIsNone(): void
    {
        $value = Json::object('{"a":[{"a":1},{"a":"a:\"a\":"}],"b":{"a":"}"},"c":"a"}');
        self::assertSame(1, $value->a[0]->a);
        self::assertSame('}', $value->b->a);
    }

    public function testObjectIsNoList(): void
    {
        $value = Json::object('{"a":{},"b":[],"c":{"0":1}}');
        self::assertInstanceOf(\stdClass::class, $value->a);
        self::assertSame([], $value->b);
        self::assertInstanceOf(\stdClass::class, $value->c);
        self::assertSame(['a' => [], 'b' => [], 'c' => [1]], Json::arrays($value));
    }

    public function testManyNamesAreRefusedBeforeTheyAreStored(): void
    {
        $members = fn(int $count) => implode(',', array_map(fn($i) => "\"n$i\":0", range(1, $count)));
        self::assertCount(500, (array) Json::object('{' . $members(500) . '}'));
        // Not even an object whose end is a fault is read: json_decode would store all of it first.
        foreach (["{{$members(501)}}", "{\"a\":[{{$members(501)}}]}", "{{$members(501)},!"] as $text) {
            try {
                Json::object($text);
                self::fail('many names are read');
            } catch (\DomainException $error) {
                self::assertSame('an object has too many names', $error->getMessage());
            }
        }
    }

    public function testLargeIntegerIsNoText(): void
    {
        self::assertIsFloat(Json::object('{"a":99999999999999999999}')->a);
        self::assertIsFloat(Json::object('{"a":1.0}')->a);
    }

    /** @dataProvider large */
    public function testLargeTextCostsItsSize(string $start, string $middle, string $end): void
    {
        $count = intdiv(Json::MOST_BYTES - strlen($start . $end), strlen($middle));
        $text = $start . str_repeat($middle, $count) . $end;
        memory_reset_peak_usage();
        $before = memory_get_usage();
        try {
            $value = Json::object($text);
            $arrays = Json::arrays($value);
        } catch (\DomainException) {
        }
        // PHP's own settings have a memory_limit of 128 MB.
        self::assertLessThan(80 << 20, memory_get_peak_usage() - $before);
    }

    public static function large(): array
    {
        return [
            'objects' => ['{"a":[', '{},', '{}]}'],
            'objects with members' => ['{"a":[', '{"a":0},', '{}]}'],
            'objects with lists' => ['{"a":[', '{"":[0]},', '{}]}'],
            'lists' => ['{"a":[', '[0],', '[]]}'],
            'escapes' => ['{"', '\\"', '":0}'],
            'texts' => ['{"a":[', '"",', '""]}'],
            'braces in a text' => ['{"a":"', '{', '"}'],
            'one name' => ['{', '"a":0,', '"a":0}'],
            'spaces' => ['{', ' ', '}'],
        ];
    }
}
