<?php

declare(strict_types=1);

namespace Twoefay\Tests;

use PHPUnit\Framework\TestCase;
use Twoefay\Policy;
use Twoefay\Texts;

/** Texts that are not those of the conformance suite. */
final class TextsTest extends TestCase
{
    public function testOnlyAPathOfThisWebsiteIsATarget(): void
    {
        foreach (['/', '/a', '/a/b?c=d&e=//f#g'] as $path) {
            self::assertSame($path, Texts::localPath($path));
        }
        $away = [
            '', 'a', '//evil.example', '/\\evil.example', 'https://evil.example', "/\n//evil.example",
            "/a\r\nset-cookie: x=y", '/é', "/a\n", ' /a', "/\t/evil.example",
        ];
        foreach ($away as $path) {
            self::assertSame('/', Texts::localPath($path));
        }
    }

    public function testBrowserThatIsNotUtf8IsCleaned(): void
    {
        self::assertSame('Evil/1', Texts::browser("Evil\xff\xe2\x80/1\n"));
        self::assertNull(Texts::browser("\xff\0"));
        self::assertSame(str_repeat('é', 512), Texts::browser(str_repeat('é', 100_000)));
    }

    public function testAddressHasAShortForm(): void
    {
        self::assertSame('2001:db8::1', Texts::address('2001:0DB8:0:0::1'));
        foreach (["1.2.3.4\n", ' 1.2.3.4', '1.2.3', '0x7f.1', '127.1', '[::1]', "::1\0"] as $text) {
            self::assertNull(Texts::address($text), $text);
        }
    }

    public function testLanguageCannotAddAField(): void
    {
        self::assertSame('de, en;q=0.5', Texts::language('de, en;q=0.5'));
        foreach ([null, '', "de\r\nx: y", 'é', str_repeat('x', 257), "de\n"] as $field) {
            self::assertNull(Texts::language($field));
        }
    }

    public function testOriginIsExact(): void
    {
        foreach (['https://a.example', 'https://localhost:8080', 'https://[::1]:8080'] as $origin) {
            self::assertSame("$origin#shop", (new Policy($origin, 'shop'))->audience());
        }
        $others = [
            'http://a.example', 'https://a.example/', 'https://u@a.example', 'https://', 'a.example',
            "https://a.example\n", 'https://a.example?x', 'https://a.example:8080x', 'https://:80',
        ];
        foreach ($others as $origin) {
            try {
                new Policy($origin, 'shop');
                self::fail("$origin is an origin");
            } catch (\InvalidArgumentException) {
                $this->addToAssertionCount(1);
            }
        }
    }
}
