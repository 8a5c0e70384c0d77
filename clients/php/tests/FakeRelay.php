<?php

declare(strict_types=1);

namespace Twoefay\Tests;

use Twoefay\Answer;
use Twoefay\Call;
use Twoefay\MemoryStore;
use Twoefay\Policy;
use Twoefay\Relay;
use Twoefay\Store;
use Twoefay\Transport;
use Twoefay\Unreachable;

/**
 * A relay that is a function or a list of answers, and notes the calls. In the body of an answer,
 * `{number}` stands for the number of the call.
 */
final class FakeRelay implements Transport
{
    public const JSON = ['content-type' => 'application/json'];
    public const HTML = ['content-type' => 'text/html'];

    /** @var list<Call> */
    public array $calls = [];

    /** @var list<Answer|Unreachable> */
    private array $answers;

    public function __construct(Answer|Unreachable ...$answers)
    {
        $this->answers = array_values($answers);
    }

    /** The same answer to every request. */
    public static function always(\Closure $answer): self
    {
        $relay = new self();
        $relay->function = $answer;
        return $relay;
    }

    private ?\Closure $function = null;

    public function send(Call $call): Answer
    {
        $this->calls[] = clone $call;
        $answer = $this->function === null ? array_shift($this->answers) : ($this->function)($call);
        if ($answer instanceof Unreachable) {
            throw $answer;
        }
        $answer ?? throw new \LogicException('the test has no further answer');
        $body = str_replace('{number}', $call->body['number'] ?? '', $answer->body);
        return new Answer($answer->status, $answer->headers, $body);
    }

    /** @return list<string|null> */
    public function keys(): array
    {
        return array_map(fn(Call $call) => $call->headers['idempotency-key'] ?? null, $this->calls);
    }

    public function client(?Clock $clock = null, ?Store $store = null, mixed ...$policy): Relay
    {
        $policy += ['origin' => 'https://login.example.com:8080', 'website' => 'shop'];
        $store ??= new MemoryStore();
        return Relay::with(new Policy(...$policy), $store, $this, $clock ?? new Clock());
    }

    public static function json(mixed $value, int $status = 201): Answer
    {
        return new Answer($status, self::JSON, is_string($value) ? $value : json_encode($value));
    }

    /** @param array<string, string> $headers */
    public static function problem(string $code, int $status, array $headers = []): Answer
    {
        $body = ['type' => "urn:twoefay:problem:$code", 'status' => $status, 'code' => $code];
        $headers += ['content-type' => 'application/problem+json'];
        return new Answer($status, $headers, json_encode($body));
    }
}
