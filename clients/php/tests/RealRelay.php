<?php

declare(strict_types=1);

namespace Twoefay\Tests;

use PHPUnit\Framework\TestCase;
use Twoefay\Relay;
use Twoefay\Store;

/** A real relay and real phones: the programs twoefayd and twoefay, over loopback. */
final class RealRelay
{
    public readonly string $directory;
    public readonly string $origin;
    private ?Program $daemon = null;
    private static ?self $shared = null;

    private function __construct(private readonly string $programs)
    {
        $this->directory = Directory::make();
        $port = self::freePort(); // twoefayd has no port 0: its origin must be known before
        $this->origin = "https://localhost:$port";
        $this->run('init', 'relay', '--listen', "127.0.0.1:$port");
        $settings = "$this->directory/relay/twoefay.yaml";
        $text = file_get_contents($settings);
        $allow = "\nwebhooks:\n  allow: \"127.0.0.0/8, ::1\"\n";
        file_put_contents($settings, str_replace("\nwebhooks:\n", $allow, $text));
        $this->operate('website', 'add', 'shop');
    }

    /** The one relay for all tests; each test has users of its own. */
    public static function shared(): self
    {
        $programs = getenv('TWOEFAY_PROGRAMS') ?: __DIR__ . '/../../../.build/debug';
        if (!is_file("$programs/twoefayd") || !is_file("$programs/twoefay")) {
            TestCase::markTestSkipped("no twoefay and twoefayd in $programs (TWOEFAY_PROGRAMS)");
        }
        if (self::$shared === null) {
            self::$shared = new self($programs);
            self::$shared->start();
            register_shutdown_function(static function (): void {
                self::$shared->stop();
                Directory::remove(self::$shared->directory);
            });
        }
        return self::$shared;
    }

    /** A port of loopback that was free a moment ago. */
    public static function freePort(): int
    {
        $probe = stream_socket_server('tcp://127.0.0.1:0');
        return (int) substr(strrchr(stream_socket_get_name($probe, false), ':'), 1);
    }

    public function run(string ...$words): string
    {
        $program = $this->begin(...$words);
        [$output, $status] = $program->end();
        $errors = (string) @file_get_contents("$this->directory/errors.log");
        TestCase::assertSame(0, $status, 'twoefay ' . implode(' ', $words) . ": $output$errors");
        return $output;
    }

    /** Starts twoefay, and does not wait for its end. */
    public function begin(string ...$words): Program
    {
        return Program::start(["$this->programs/twoefay", ...$words], $this->directory);
    }

    public function operate(string ...$words): string
    {
        return $this->run('--config', 'relay/twoefay.yaml', ...$words);
    }

    /** Returns when the relay says in its log that it listens. */
    public function start(): void
    {
        $command = "exec '$this->programs/twoefayd' --config relay/twoefay.yaml 2>&1";
        $this->daemon = Program::start(['sh', '-c', $command], $this->directory);
        $this->daemon->waitFor('event=daemon.started', "$this->directory/relay.log");
    }

    public function stop(): void
    {
        $this->daemon?->stop();
        $this->daemon = null;
    }

    public function client(Store $store, string $website = 'shop', mixed ...$settings): Relay
    {
        $at = $this->directory;
        return new Relay(
            $this->origin,
            "$at/relay/ca.pem",
            "$at/$website.pem",
            "$at/$website.key",
            $store,
            ...$settings,
        );
    }

    // MARK: The phone

    public function enrol(string $uri, string $phone): void
    {
        $this->run('phone', 'enrol', $uri, '--keys', $phone, '--json');
    }

    /** `approve`, `deny` or `fraud`. Returns the running phone: its end has the status. */
    public function answering(
        string $what,
        string $challenge,
        ?string $number,
        string $phone,
    ): Program {
        $words = ['phone', $what, '--keys', $phone, '--challenge', $challenge];
        $number = $number !== null && $what === 'approve' ? ['--number', $number] : [];
        return $this->begin(...$words, ...$number);
    }

    /** The same, to its end. Returns the exit status of the phone. */
    public function answer(string $what, string $challenge, ?string $number, string $phone): int
    {
        return $this->answering($what, $challenge, $number, $phone)->end()[1];
    }
}
