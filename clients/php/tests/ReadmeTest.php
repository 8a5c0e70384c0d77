<?php

declare(strict_types=1);

namespace Twoefay\Tests;

use PHPUnit\Framework\TestCase;

/** The code of README.md, as a newcomer copies it. */
final class ReadmeTest extends TestCase
{
    private string $directory;

    protected function setUp(): void
    {
        $this->directory = Directory::make();
    }

    protected function tearDown(): void
    {
        Directory::remove($this->directory);
    }

    public function testFifteenLines(): void
    {
        $real = RealRelay::shared();
        $readme = file_get_contents(__DIR__ . '/../README.md');
        self::assertSame(1, preg_match('/```php shop\.php\n(.*?)```/s', $readme, $found));
        $lines = array_filter(explode("\n", $found[1]), fn(string $line) => trim($line) !== '');
        self::assertLessThanOrEqual(15, count($lines));
        foreach (['shop.pem', 'shop.key', 'relay'] as $file) {
            symlink("$real->directory/$file", "$this->directory/$file");
        }
        symlink(dirname(__DIR__), "$this->directory/twoefay");
        $code = str_replace('https://localhost:8080', $real->origin, $found[1], $count);
        self::assertSame(1, $count);
        file_put_contents("$this->directory/shop.php", $code);

        [$uri, $status] = $this->php("echo \$relay->register('newcomer')->uri;")->end();
        self::assertSame(0, $status, $uri);
        $real->enrol($uri, 'newcomer');
        $waiting = $this->php("var_dump(log_in('newcomer', '192.0.2.7', 'Firefox'));");
        $line = $waiting->line();
        self::assertSame(1, preg_match('/on your phone: ([0-9]+)$/', $line, $number));
        $phone = ['phone', 'watch', '--auto', 'approve', '--once', '--keys', 'newcomer'];
        $real->run(...$phone, ...['--number', $number[1]]);
        self::assertSame(["bool(true)\n", 0], $waiting->end());
        [$svg] = $this->php("echo enrol('another-newcomer');")->end();
        self::assertStringContainsString('<svg', $svg);
    }

    public function testAllCodeIsPhp(): void
    {
        preg_match_all('/```php[^\n]*\n(.*?)```/s', file_get_contents(__DIR__ . '/../README.md'), $found);
        self::assertGreaterThan(4, count($found[1]));
        foreach ($found[1] as $code) {
            $start = str_starts_with($code, '<?php') ? '' : "<?php\n";
            file_put_contents("$this->directory/code.php", $start . $code);
            $lint = Program::start([PHP_BINARY, '-l', 'code.php'], $this->directory);
            [$output, $status] = $lint->end();
            self::assertSame(0, $status, $output);
        }
    }

    public function testAdapterHasTheShapeOfPsr15(): void
    {
        $readme = file_get_contents(__DIR__ . '/../README.md');
        self::assertSame(1, preg_match('/```php\n(use Psr.*?)```/s', $readme, $found));
        // The interfaces as PSR-7, PSR-15 and PSR-17 have them, as far as the adapter names them.
        $interfaces = 'namespace Psr\Http\Message { interface ResponseInterface {}'
            . ' interface ServerRequestInterface {} }'
            . ' namespace Psr\Http\Server { use Psr\Http\Message\{ResponseInterface,'
            . ' ServerRequestInterface}; interface RequestHandlerInterface { public function'
            . ' handle(ServerRequestInterface $request): ResponseInterface; }'
            . ' interface MiddlewareInterface { public function process(ServerRequestInterface'
            . ' $request, RequestHandlerInterface $handler): ResponseInterface; } }';
        $code = "<?php $interfaces namespace { {$found[1]}"
            . ' echo implode(class_implements("SecondFactorMiddleware")); }';
        file_put_contents("$this->directory/adapter.php", $code);
        $adapter = Program::start([PHP_BINARY, 'adapter.php'], $this->directory);
        self::assertSame(['Psr\Http\Server\MiddlewareInterface', 0], $adapter->end());
    }

    private function php(string $code): Program
    {
        $code = "require 'shop.php'; $code";
        return Program::start([PHP_BINARY, '-r', $code], $this->directory);
    }
}
