<?php

declare(strict_types=1);

namespace Twoefay\Tests;

use PHPUnit\Framework\TestCase;
use Twoefay\QrCode;

/** A real decoder reads the codes: zbar. */
final class QrCodeTest extends TestCase
{
    /** @dataProvider versions */
    public function testDecoderReadsEveryVersion(int $version): void
    {
        $text = self::text(QrCode::capacity($version));
        self::assertSame(17 + 4 * $version, count(QrCode::of($text)->modules()));
        self::assertSame($text, self::read(self::svgAsImage(QrCode::of($text)->svg('a code'))));
    }

    public static function versions(): iterable
    {
        for ($version = 1; $version <= 40; $version++) {
            yield [$version];
        }
    }

    public function testShorterTextIsPadded(): void
    {
        foreach ([1, 2, 3, 13, 100] as $length) {
            $svg = QrCode::of(self::text($length))->svg('a code');
            self::assertSame(self::text($length), self::read(self::svgAsImage($svg)));
        }
    }

    public function testLongTextIsRefused(): void
    {
        $this->expectException(\LengthException::class);
        QrCode::of(str_repeat('x', QrCode::capacity(40) + 1));
    }

    public function testTitleIsText(): void
    {
        $svg = QrCode::of('x')->svg('<script>"');
        self::assertStringContainsString('<title>&lt;script&gt;&quot;</title>', $svg);
        self::assertInstanceOf(\SimpleXMLElement::class, simplexml_load_string($svg));
    }

    /** What zbar reads in an image. */
    public static function read(string $image): string
    {
        $command = ['zbarimg', '--quiet', '--raw', '--nodbus', '-Sdisable', '-Sqrcode.enable', '-'];
        $pipes = [];
        $process = proc_open($command, [['pipe', 'r'], ['pipe', 'w'], ['pipe', 'w']], $pipes);
        fwrite($pipes[0], $image);
        fclose($pipes[0]);
        $text = stream_get_contents($pipes[1]);
        $errors = stream_get_contents($pipes[2]);
        $status = proc_close($process);
        return $status === 0 ? rtrim($text, "\n") : "zbarimg: $errors";
    }

    /** Draws the squares of the SVG into an image of PGM, two pixels a module. */
    public static function svgAsImage(string $svg): string
    {
        preg_match('/viewBox="0 0 (\d+) /', $svg, $side);
        preg_match_all('/M(\d+) (\d+)h1v1h-1z/', $svg, $squares, PREG_SET_ORDER);
        $rows = array_fill(0, (int) $side[1], str_repeat("\xff", (int) $side[1]));
        foreach ($squares as [, $x, $y]) {
            $rows[(int) $y][(int) $x] = "\0";
        }
        $pixels = '';
        foreach ($rows as $row) {
            $wide = implode(array_map(fn(string $one) => str_repeat($one, 2), str_split($row)));
            $pixels .= str_repeat($wide, 2);
        }
        return sprintf("P5\n%1\$d %1\$d\n255\n", 2 * $side[1]) . $pixels;
    }

    private static function text(int $length): string
    {
        $text = '';
        for ($i = 0; strlen($text) < $length; $i++) {
            $text .= substr(hash('sha256', (string) $i) . ':/?=&%._-', 0, $length - strlen($text));
        }
        return $text;
    }
}
