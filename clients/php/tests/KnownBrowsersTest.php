<?php

declare(strict_types=1);

namespace Twoefay\Tests;

use PHPUnit\Framework\TestCase;
use Twoefay\Base64Url;
use Twoefay\KnownBrowsers;

final class KnownBrowsersTest extends TestCase
{
    private const NOW = 1_795_334_400;

    public function testCookieIsForOneUserAndHalfAYear(): void
    {
        $value = $this->clientAt(0)->value('ada');
        self::assertTrue($this->clientAt(0)->knows($value, 'ada'));
        self::assertTrue($this->clientAt(-60)->knows($value, 'ada'));
        self::assertFalse($this->clientAt(-61)->knows($value, 'ada'));
        self::assertTrue($this->clientAt(KnownBrowsers::LIFE - 1)->knows($value, 'ada'));
        self::assertFalse($this->clientAt(KnownBrowsers::LIFE)->knows($value, 'ada'));
        self::assertFalse($this->clientAt(0)->knows($value, 'bob'));
        self::assertFalse($this->clientAt(0)->knows($value, 'ada', notBefore: self::NOW + 1));
        $others = new KnownBrowsers(str_repeat("\0", 32), new Clock(self::NOW));
        self::assertFalse($others->knows($value, 'ada'));
    }

    public function testOtherTextsAreNoCookies(): void
    {
        $texts = [null, '', 'x', 'é', str_repeat('A', 70), str_repeat('=', 70), "a\n"];
        foreach ($texts as $text) {
            self::assertFalse($this->clientAt(0)->knows($text, 'ada'));
        }
    }

    public function testFormIsThatOfTheOtherClients(): void
    {
        $body = pack('J', self::NOW) . str_repeat("\0", 12);
        $tag = hash_hmac('sha256', "twoefay known browser\0{$body}ada", self::key(), true);
        self::assertTrue($this->clientAt(0)->knows(Base64Url::encode($body . $tag), 'ada'));
    }

    public function testShortKeyIsRefused(): void
    {
        $this->expectException(\InvalidArgumentException::class);
        new KnownBrowsers(str_repeat('k', 31));
    }

    private function clientAt(int $seconds): KnownBrowsers
    {
        return new KnownBrowsers(self::key(), new Clock(self::NOW + $seconds));
    }

    private static function key(): string
    {
        return implode(array_map(chr(...), range(0, 31)));
    }
}
