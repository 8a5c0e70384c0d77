<?php

declare(strict_types=1);

namespace Twoefay\Tests;

/** A program that runs beside the test, in a process group of its own. */
final class Program
{
    /** @var resource|null */
    private mixed $process;

    /** @var array<int, resource> */
    private array $pipes = [];

    /** @var resource|null copies the output to a file */
    private mixed $reader = null;

    private function __construct()
    {
    }

    /**
     * @param list<string>          $command
     * @param array<string, string> $environment added to that of the test
     */
    public static function start(array $command, string $directory, array $environment = []): self
    {
        $program = new self();
        $kinds = [['pipe', 'r'], ['pipe', 'w'], ['file', "$directory/errors.log", 'a']];
        $environment += getenv();
        $command = ['setsid', ...$command];
        $process = proc_open($command, $kinds, $program->pipes, $directory, $environment);
        $program->process = $process ?: throw new \RuntimeException("$command[1] does not start");
        return $program;
    }

    /** The next line of its output; waits for it. */
    public function line(): string
    {
        $line = fgets($this->pipes[1]);
        return $line === false ? throw new \RuntimeException('the program has ended') : rtrim($line);
    }

    /** Waits for a line with this text; from then on its output goes to a file. */
    public function waitFor(string $text, string $log): void
    {
        stream_set_chunk_size($this->pipes[1], 1); // what is read ahead would be lost below
        $lines = '';
        while (!str_contains($line = (string) fgets($this->pipes[1]), $text)) {
            $lines .= $line;
            $line === '' && throw new \RuntimeException("the program has ended: $lines");
        }
        file_put_contents($log, $lines . $line, FILE_APPEND);
        // A pipe that nobody reads fills up, and then the program stands still.
        $pipes = [];
        $this->reader = proc_open(['cat'], [$this->pipes[1], ['file', $log, 'a']], $pipes);
    }

    /** Its whole further output, and its status; waits for its end. */
    public function end(): array
    {
        fclose($this->pipes[0]);
        $output = stream_get_contents($this->pipes[1]);
        $status = proc_close($this->process);
        $this->process = null;
        return [$output, $status];
    }

    /** Ends it, with the processes that it has started. */
    public function stop(): void
    {
        if ($this->process !== null) {
            posix_kill(-proc_get_status($this->process)['pid'], SIGTERM);
            proc_close($this->process);
            $this->process = null;
            $this->reader === null || proc_close($this->reader);
        }
    }
}
