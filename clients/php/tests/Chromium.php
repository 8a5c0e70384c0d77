<?php

declare(strict_types=1);

namespace Twoefay\Tests;

use PHPUnit\Framework\TestCase;

/** A real browser, by its DevTools protocol over pipes. */
final class Chromium
{
    /** @var resource */
    private mixed $process;

    /** @var array<int, resource> */
    private array $pipes = [];

    private int $id = 0;
    private int $loads = 0;
    private ?string $session = null;

    /** @var list<string> what the browser's console and its policies complain about */
    private array $complaints = [];

    /** Skips the test, and says so, without a browser. */
    public static function start(string $directory): self
    {
        $program = trim((string) shell_exec('command -v chromium || command -v chromium-browser'));
        if ($program === '') {
            TestCase::markTestSkipped('no chromium');
        }
        $chromium = new self();
        $options = ['--headless', '--no-sandbox', '--disable-gpu', '--no-proxy-server'];
        $options = [...$options, '--disable-background-networking', '--remote-debugging-pipe'];
        $command = ['setsid', $program, ...$options, "--user-data-dir=$directory/chromium"];
        $log = ['file', "$directory/chromium.log", 'a'];
        $kinds = [['file', '/dev/null', 'r'], $log, $log, ['pipe', 'r'], ['pipe', 'w']];
        $chromium->process = proc_open($command, $kinds, $chromium->pipes, $directory);
        $target = $chromium->call('Target.createTarget', ['url' => 'about:blank'])['targetId'];
        $attach = ['targetId' => $target, 'flatten' => true];
        $chromium->session = $chromium->call('Target.attachToTarget', $attach)['sessionId'];
        foreach (['Page.enable', 'Log.enable', 'Runtime.enable'] as $method) {
            $chromium->call($method);
        }
        return $chromium;
    }

    public function open(string $url): void
    {
        $this->expectLoad();
        $this->call('Page.navigate', ['url' => $url]);
        $this->waitForLoad();
    }

    /** Runs a script that leads to another page, and waits for that. */
    public function submit(string $script): void
    {
        $this->expectLoad();
        $this->value($script);
        $this->waitForLoad();
    }

    public function value(string $script): mixed
    {
        return $this->call('Runtime.evaluate', ['expression' => $script])['result']['value'] ?? null;
    }

    public function expectLoad(): void
    {
        $this->loads = 0;
    }

    public function waitForLoad(): void
    {
        while ($this->loads === 0) {
            $this->receive();
        }
    }

    /** @return list<string> */
    public function complaints(): array
    {
        return $this->complaints;
    }

    public function stop(): void
    {
        posix_kill(-proc_get_status($this->process)['pid'], SIGKILL);
        proc_close($this->process);
    }

    /** @param array<string, mixed> $parameters */
    private function call(string $method, array $parameters = []): array
    {
        $id = ++$this->id;
        $message = ['id' => $id, 'method' => $method, 'params' => (object) $parameters];
        $message += $this->session === null ? [] : ['sessionId' => $this->session];
        fwrite($this->pipes[3], json_encode($message) . "\0");
        do {
            $answer = $this->receive();
        } while (($answer['id'] ?? null) !== $id);
        return $answer['result'] ?? throw new \RuntimeException(json_encode($answer));
    }

    private function receive(): array
    {
        $text = stream_get_line($this->pipes[4], 1 << 24, "\0");
        if ($text === false) {
            throw new \RuntimeException('the browser has ended');
        }
        $message = json_decode($text, true);
        $method = $message['method'] ?? '';
        $this->loads += $method === 'Page.loadEventFired' ? 1 : 0;
        $level = $message['params']['entry']['level'] ?? '';
        $isError = $level === 'error' && !str_contains($text, '/favicon.ico');
        if ($isError || $method === 'Runtime.exceptionThrown') {
            $this->complaints[] = $text;
        }
        return $message;
    }
}
