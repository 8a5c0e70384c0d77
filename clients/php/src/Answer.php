<?php

declare(strict_types=1);

namespace Twoefay;

/** An HTTP answer of the relay, and how it becomes an object or an error. */
final class Answer
{
    /** @param array<string, string> $headers names are in lower case */
    public function __construct(
        public readonly int $status,
        public readonly array $headers,
        public readonly string $body,
    ) {
    }

    /** The object of an answer with one of these statuses. Everything else is an error. */
    public function object(int ...$statuses): \stdClass
    {
        if (!in_array($this->status, $statuses, true)) {
            throw $this->error();
        }
        if ($this->status === 204) {
            return new \stdClass();
        }
        if ($this->kind() !== 'application/json') {
            throw new OddAnswer('the answer is not JSON', $this->status);
        }
        try {
            return Json::object($this->body);
        } catch (\DomainException $fault) {
            throw new OddAnswer('the answer is not an object of JSON', $this->status);
        }
    }

    /** The refusal, if it is one of a relay. What a proxy answers is no statement of the relay. */
    public function error(): TwoefayError
    {
        $odd = new OddAnswer('the answer is not from a relay', $this->status);
        if ($this->kind() !== 'application/problem+json') {
            return $odd;
        }
        try {
            $problem = Json::object($this->body);
        } catch (\DomainException) {
            return $odd;
        }
        $code = $problem->code ?? null;
        $isOwn = is_string($code) && $code !== '' && ($problem->status ?? null) === $this->status;
        if (!$isOwn || $this->status < 400) {
            return $odd;
        }
        foreach (Refused::KINDS as $kind) {
            if ($kind::WORD === $code) {
                $isItsStatus = $kind::STATUS === $this->status;
                return $isItsStatus ? new $kind($problem, $this->status, $this) : $odd;
            }
        }
        return new Refused($problem, $this->status, $this);
    }

    public static function text(\stdClass $object, string $name): string
    {
        $member = $object->{$name} ?? null;
        return is_string($member) ? $member : throw new OddAnswer("$name is no text");
    }

    public static function optional(\stdClass $object, string $name): ?string
    {
        return isset($object->{$name}) ? self::text($object, $name) : null;
    }

    /** A text that can be a key of a database, and a segment of a path. */
    public static function id(\stdClass $object, string $name): string
    {
        $id = self::text($object, $name);
        return preg_match(Texts::ID, $id) === 1 ? $id : throw new OddAnswer("$name is no id");
    }

    /** @return list<\stdClass> */
    public static function objects(\stdClass $object, string $name): array
    {
        $list = $object->{$name} ?? null;
        if (!is_array($list)) {
            throw new OddAnswer("$name is no list of objects");
        }
        foreach ($list as $entry) {
            $entry instanceof \stdClass ?: throw new OddAnswer("$name is no list of objects");
        }
        return $list;
    }

    private function kind(): string
    {
        return strtolower(trim(explode(';', $this->headers['content-type'] ?? '', 2)[0]));
    }
}
