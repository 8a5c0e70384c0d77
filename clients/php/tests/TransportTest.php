<?php

declare(strict_types=1);

namespace Twoefay\Tests;

use PHPUnit\Framework\TestCase;
use Twoefay\Call;
use Twoefay\CurlTransport;
use Twoefay\Unreachable;

/** ext-curl against a server that answers oddly. */
final class TransportTest extends TestCase
{
    private static string $directory;
    private static Program $server;
    private static int $port;

    public static function setUpBeforeClass(): void
    {
        self::$directory = $at = Directory::make();
        foreach (['own', 'other'] as $name) {
            [$certificate, $key] = self::issue($name, null, 'basicConstraints=critical,CA:TRUE');
            self::write("$name.ca", $certificate, $key);
            foreach (['localhost' => 'DNS:localhost', 'shop' => 'URI:twoefay:website:shop'] as $to => $san) {
                [$leaf, $leafKey] = self::issue($to, [$certificate, $key], "subjectAltName=$san");
                self::write("$name.$to", $leaf, $leafKey);
            }
        }
        $script = [PHP_BINARY, __DIR__ . '/fake_server.php', "$at/own.localhost.both", "$at/own.ca.pem"];
        self::$server = Program::start($script, $at);
        self::$port = (int) self::$server->line();
    }

    public static function tearDownAfterClass(): void
    {
        self::$server->stop();
        Directory::remove(self::$directory);
    }

    public function testCertificateAndFieldsAreSent(): void
    {
        $call = new Call('POST', '/echo', ['text' => 'é/'], ['prefer' => 'wait=9']);
        $seen = json_decode($this->transport()->send($call)->body, true);
        self::assertSame('shop', $seen['peer']);
        self::assertSame('{"text":"é/"}', $seen['body']);
        self::assertStringStartsWith('POST /echo HTTP/1.1', $seen['head']);
        $fields = strtolower($seen['head']);
        self::assertStringContainsString("\r\nprefer: wait=9\r\n", $fields);
        self::assertStringContainsString("\r\naccept-encoding: identity\r\n", $fields);
        self::assertStringContainsString("\r\ncontent-type: application/json\r\n", $fields);
        self::assertStringNotContainsString('expect:', $fields);
    }

    public function testBodyAndMethodOfOneCallAreNotThoseOfTheNext(): void
    {
        $transport = $this->transport();
        $transport->send(new Call('POST', '/echo', ['text' => 'x'], ['idempotency-key' => 'k']));
        $seen = json_decode($transport->send(new Call('GET', '/echo'))->body, true);
        self::assertStringStartsWith('GET /echo', $seen['head']);
        self::assertSame('', $seen['body']);
        self::assertStringNotContainsString('idempotency-key', $seen['head']);
        $seen = json_decode($transport->send(new Call('POST', '/echo', []))->body, true);
        self::assertSame('{}', $seen['body']);
        $seen = json_decode($transport->send(new Call('POST', '/echo'))->body, true);
        self::assertStringContainsStringIgnoringCase("\r\ncontent-length: 0\r\n", $seen['head']);
        self::assertStringNotContainsStringIgnoringCase('content-type', $seen['head']);
    }

    public function testPathStaysAsItIs(): void
    {
        $seen = json_decode($this->transport()->send(new Call('GET', '/echo?/../x'))->body, true);
        self::assertStringStartsWith('GET /echo?/../x ', $seen['head']);
    }

    public function testProxyOfTheEnvironmentIsIgnored(): void
    {
        putenv('https_proxy=http://127.0.0.1:1');
        try {
            self::assertSame(200, $this->transport()->send(new Call('GET', '/echo'))->status);
        } finally {
            putenv('https_proxy');
        }
    }

    public function testOtherAuthorityIsNotTrusted(): void
    {
        $this->expectException(Unreachable::class);
        $this->expectExceptionMessage('certificate');
        $this->transport(authority: 'other')->send(new Call('GET', '/echo'));
    }

    public function testConnectionIsKeptWhereNothingForks(): void
    {
        [$first, $second] = $this->bodies(['GET', '/number'], ['GET', '/number']);
        self::assertSame($first, $second);
    }

    public function testConnectionIsNotKeptWhereAChildCouldEndIt(): void
    {
        $transport = $this->transport();
        $first = $transport->send(new Call('GET', '/number'))->body;
        self::assertNotSame($first, $transport->send(new Call('GET', '/number'))->body);
    }

    public function testLibcurlRepeatsNoPatch(): void
    {
        $before = (int) $this->transport()->send(new Call('GET', '/times'))->body;
        [, $lost] = $this->bodies(['GET', '/number'], ['PATCH', '/lost']);
        self::assertStringContainsString('no answer', $lost);
        $after = (int) $this->transport()->send(new Call('GET', '/times'))->body;
        self::assertSame($before + 1, $after);
    }

    /**
     * The bodies, or errors, of calls in a process like those of a web server, which cannot fork.
     *
     * @param array{string, string} ...$calls method and path
     * @return list<string>
     */
    private function bodies(array ...$calls): array
    {
        $at = self::$directory;
        $code = 'require $argv[1]; $transport = new Twoefay\CurlTransport(...array_slice($argv, 3));'
            . 'foreach (json_decode($argv[2]) as $call) {'
            . 'try { $body = $transport->send(new Twoefay\Call(...$call))->body; }'
            . 'catch (Twoefay\Unreachable $error) { $body = $error->getMessage(); }'
            . 'echo "$body\n"; }';
        $files = ["$at/own.ca.pem", "$at/own.shop.pem", "$at/own.shop.key"];
        $origin = 'https://localhost:' . self::$port;
        $words = [__DIR__ . '/../autoload.php', json_encode($calls), $origin, ...$files];
        $php = [PHP_BINARY, '-d', 'disable_functions=pcntl_fork', '-r', $code, '--', ...$words];
        [$output, $status] = Program::start($php, $at)->end();
        self::assertSame(0, $status, $output);
        return explode("\n", rtrim($output));
    }

    public function testAuthoritiesOfTheSystemAreNotTrusted(): void
    {
        $at = self::$directory;
        @mkdir("$at/certs");
        $hash = openssl_x509_parse(file_get_contents("$at/own.ca.pem"))['hash'];
        copy("$at/own.ca.pem", "$at/certs/$hash.0");
        $origin = 'https://localhost:' . self::$port;
        $code = 'require $argv[1]; $t = new Twoefay\CurlTransport(...array_slice($argv, 2));'
            . 'try { echo $t->send(new Twoefay\Call("GET", "/echo"))->status; }'
            . 'catch (Twoefay\Unreachable $error) { echo $error->getMessage(); }';
        $files = ["$at/other.ca.pem", "$at/own.shop.pem", "$at/own.shop.key"];
        $php = [PHP_BINARY, '-r', $code, '--', __DIR__ . '/../autoload.php', $origin, ...$files];
        // In this process and its children alone, the directory of the system is another one.
        $mount = "mount --bind $at/certs /etc/ssl/certs && echo ready && exec \"$@\"";
        $program = Program::start(['unshare', '-rm', 'sh', '-c', $mount, 'sh', ...$php], $at);
        [$output] = $program->end();
        if (!str_starts_with($output, 'ready')) {
            self::markTestSkipped('unshare is not allowed here');
        }
        self::assertStringContainsString('certificate problem', $output);
    }

    public function testOtherNameIsNotTrusted(): void
    {
        $this->expectException(Unreachable::class);
        $this->transport(host: '127.0.0.1')->send(new Call('GET', '/echo'));
    }

    public function testCertificateOfAnotherAuthorityIsRefused(): void
    {
        $this->expectException(Unreachable::class);
        $this->transport(website: 'other')->send(new Call('GET', '/echo'));
    }

    /**
     * @testWith ["/close"]
     *           ["/truncated"]
     *           ["/garbage"]
     *           ["/endless"]
     *           ["/fields"]
     */
    public function testOddAnswerIsNone(string $path): void
    {
        memory_reset_peak_usage();
        $before = memory_get_usage();
        try {
            // A truncated body has no end without a length: curl has to tell.
            $this->transport()->send(new Call('GET', $path));
            self::fail('there is an answer');
        } catch (Unreachable) {
            self::assertLessThan(16 << 20, memory_get_peak_usage() - $before);
        }
    }

    public function testRedirectIsNotFollowed(): void
    {
        $answer = $this->transport()->send(new Call('GET', '/redirect'));
        self::assertSame([307, ''], [$answer->status, $answer->body]);
    }

    public function testPackedAnswerIsNotUnpacked(): void
    {
        $answer = $this->transport()->send(new Call('GET', '/packed'));
        self::assertSame(gzencode('{}'), $answer->body);
    }

    public function testInterimAnswerIsNone(): void
    {
        $answer = $this->transport()->send(new Call('GET', '/interim'));
        self::assertSame(200, $answer->status);
        self::assertSame(['content-type' => 'application/json'], $answer->headers);
    }

    public function testTwoFieldsOfOneNameAreJoined(): void
    {
        $answer = $this->transport()->send(new Call('GET', '/twice'));
        self::assertSame('application/json, text/html', $answer->headers['content-type']);
    }

    public function testNobodyListens(): void
    {
        $at = self::$directory;
        $files = ["$at/own.ca.pem", "$at/own.shop.pem", "$at/own.shop.key"];
        $this->expectException(Unreachable::class);
        (new CurlTransport('https://localhost:1', ...$files))->send(new Call('GET', '/echo'));
    }

    public function testMissingFileIsToldAtOnce(): void
    {
        $this->expectExceptionMessage('missing.pem cannot be read');
        new CurlTransport('https://localhost:1', 'missing.pem', 'missing.pem', 'missing.key');
    }

    private function transport(
        string $host = 'localhost',
        string $authority = 'own',
        string $website = 'own',
    ): CurlTransport {
        $at = self::$directory;
        $origin = "https://$host:" . self::$port;
        $files = ["$at/$authority.ca.pem", "$at/$website.shop.pem", "$at/$website.shop.key"];
        return new CurlTransport($origin, ...$files);
    }

    /** @return array{\OpenSSLCertificate, \OpenSSLAsymmetricKey} */
    private static function issue(string $name, ?array $issuer, string $extension): array
    {
        $settings = self::$directory . '/openssl.cnf';
        $lines = "[req]\ndefault_bits=2048\ndistinguished_name=dn\n[dn]\n[own]\n$extension\n";
        file_put_contents($settings, $lines);
        $options = ['config' => $settings, 'x509_extensions' => 'own', 'digest_alg' => 'sha256'];
        $kind = ['private_key_type' => OPENSSL_KEYTYPE_EC, 'curve_name' => 'prime256v1'];
        $key = openssl_pkey_new($kind + $options);
        $request = openssl_csr_new(['commonName' => $name], $key, $options);
        [$authority, $signer] = $issuer ?? [null, $key];
        $serial = random_int(1, 1 << 30);
        return [openssl_csr_sign($request, $authority, $signer, 1, $options, $serial), $key];
    }

    private static function write(string $name, \OpenSSLCertificate $certificate, object $key): void
    {
        $at = self::$directory . "/$name";
        openssl_x509_export($certificate, $pem);
        openssl_pkey_export($key, $secret, null, ['config' => self::$directory . '/openssl.cnf']);
        file_put_contents("$at.pem", $pem);
        file_put_contents("$at.key", $secret);
        file_put_contents("$at.both", $pem . $secret);
    }
}
