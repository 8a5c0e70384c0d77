<?php

declare(strict_types=1);

namespace Twoefay;

/** Logins at the relay: ask, wait, check. Relay documents each call. */
final class Logins
{
    private const LONGEST_HOLD = 60;
    private const LONGEST_LIFE = 600;
    private const FEWEST_DIGITS = 2;

    public function __construct(
        private readonly Policy $policy,
        private readonly Store $store,
        private readonly Client $client,
        private readonly World $world,
        private readonly Enrolments $enrolments,
    ) {
    }

    /**
     * @param array<string, mixed>  $shown   what the phone shows
     * @param array<string, mixed>  $further other members of the request
     * @param string|null           $number  the website's own; null: the client chooses one
     * @param array<string, string> $headers
     */
    public function ask(
        string $username,
        array $shown,
        array $further,
        ?string $number,
        array $headers,
    ): Login {
        Texts::segment($username);
        $request = bin2hex($this->world->random(16));
        $isGiven = static fn(mixed $value): bool => $value !== null;
        $sent = ['username' => $username, 'request' => $request] + array_filter($shown, $isGiven);
        $further = array_filter($further, $isGiven);
        $now = $this->world->now();
        $this->store->open($request, $now);
        $answer = $this->open($sent + $further, $number, $headers);
        $missing = is_array($answer->missing ?? null) ? $answer->missing : [];
        return new Login(
            Answer::id($answer, 'challenge'),
            Answer::optional($answer, 'number'),
            $now,
            $sent,
            $further['factors'] ?? null,
            $further['min_assurance'] ?? null,
            Answer::optional($answer, 'factor'),
            ($answer->login ?? null) === 'verified',
            ($answer->codes ?? null) === 'locked',
            array_values(array_filter($missing, is_string(...))),
        );
    }

    /**
     * Opens the login with a number that the website chose. A relay that chose it could show two
     * visitors the same, and have the user approve the login of the other one.
     *
     * @param array<string, mixed>  $body
     * @param array<string, string> $headers
     */
    private function open(array $body, ?string $number, array $headers): \stdClass
    {
        $least = $this->policy->leastDigits;
        if ($number !== null || $least === 0) {
            return $this->post($body, $number, $headers);
        }
        try {
            $number = $this->world->digits(max(self::FEWEST_DIGITS, $least));
            return $this->post($body, $number, $headers);
        } catch (Invalid $error) {
            // The operator may have raised the number of digits. Only that choice is the relay's.
            if ($error->faults !== ['number' => 'length'] || $least === Policy::MOST_DIGITS) {
                throw $error;
            }
            return $this->post($body, $this->world->digits(Policy::MOST_DIGITS), $headers);
        }
    }

    /**
     * @param array<string, mixed>  $body
     * @param array<string, string> $headers
     */
    private function post(array $body, ?string $number, array $headers): \stdClass
    {
        $body += $number === null ? [] : ['number' => $number];
        $answer = $this->client->send(new Call('POST', '/login', $body, $headers), 201);
        $answered = Answer::optional($answer, 'number');
        if ($answered !== null && preg_match(Texts::NUMBER, $answered) !== 1) {
            throw new OddAnswer('the number is none');
        }
        // Without a number in the answer, no phone can answer.
        if ($number !== null && $answered !== null && $answered !== $number) {
            throw new OddAnswer('the number differs from the one that was asked for');
        }
        return $answer;
    }

    /** The relay's answer about a challenge, unchecked. */
    public function state(Login $login, int $hold): \stdClass
    {
        $hold = max(0, min($hold, self::LONGEST_HOLD));
        $headers = $hold > 0 ? ['prefer' => "wait=$hold"] : [];
        $call = new Call('POST', '/auth', ['challenge' => $login->challenge], $headers, $hold);
        $answer = $this->client->send($call, 200);
        self::word($answer);
        return $answer;
    }

    /** Without `$within`, outages and limits end the wait only with the challenge's life. */
    public function wait(Login $login, ?float $within): Decision
    {
        $end = $this->world->monotonic() + ($within ?? self::LONGEST_LIFE);
        while (true) {
            $begun = $this->world->monotonic();
            $hold = (int) max(0, min($end - $begun, self::LONGEST_HOLD));
            try {
                $answer = $this->state($login, $hold);
            } catch (TwoefayError $error) {
                $pause = (Client::wish($error) ?? 0) ?: 5;
                $passes = $error instanceof Limited || Client::mayPass($error);
                if (!$passes || $within !== null || $this->world->monotonic() + $pause > $end) {
                    throw $error;
                }
                $this->world->pause($pause);
                continue;
            }
            $isOver = $hold === 0 || $this->world->monotonic() >= $end;
            if (self::word($answer) !== 'wait' || $isOver) {
                return $this->check($login, $answer);
            }
            // A relay that shuts down answers early; a repetition at once would meet it again.
            if ($this->world->monotonic() - $begun < 0.5) {
                $this->world->pause(0.5);
            }
        }
    }

    public function enter(Login $login, #[\SensitiveParameter] string $code): Decision
    {
        $body = ['challenge' => $login->challenge, 'otp' => $code];
        $answer = $this->client->send(new Call('POST', '/backup', $body), 200);
        if (($answer->login ?? null) === 'failure' && !isset($answer->reason)) {
            // A wrong code: the challenge goes on.
            return new Decision('open', answer: Json::arrays($answer));
        }
        return $this->check($login, $answer);
    }

    public function begin(Login $login, string $factor): void
    {
        $path = '/challenge/' . Texts::segment($login->challenge) . '/factor';
        $this->client->send(new Call('POST', $path, ['factor' => $factor]), 202);
    }

    public function cancel(Login $login): void
    {
        $path = '/challenge/' . Texts::segment($login->challenge);
        $this->client->send(new Call('DELETE', $path), 204);
    }

    /** Decides by the relay's answer, and spends the request of an approval as the last step. */
    public function check(Login $login, \stdClass $answer): Decision
    {
        $facts = [];
        foreach (['factor', 'proof', 'assurance'] as $name) {
            $facts[$name] = self::textOf($answer, $name);
        }
        $facts['answer'] = Json::arrays($answer);
        $word = self::word($answer);
        if ($word === 'wait') {
            return new Decision('open', ...$facts);
        }
        if ($word === 'failure') {
            return new Decision('denied', self::textOf($answer, 'reason'), ...$facts);
        }
        $username = $login->username();
        $device = self::textOf($answer, 'device');
        $pins = $this->store->pins($username);
        $isNew = ($answer->proof ?? null) === 'signed' && !isset($pins[$device ?? '']);
        // The phone may have been bound since: its binding proves its key now as well as then.
        if ($isNew && $this->store->secrets($username, $this->world->now()) !== []) {
            $this->enrolments->confirm($username);
            $pins = $this->store->pins($username);
        }
        $wasPinned = $this->store->wasPinned($username);
        $check = new ReceiptCheck($this->policy, $login, $pins, $wasPinned, $this->world->now());
        $claims = $check->success($answer);
        if (!$this->store->spend($login->request())) {
            throw new ReceiptError('request_used');
        }
        $facts['assurance'] = $check->assurance($answer);
        $facts += ['device' => $device, 'userVerification' => $claims?->uv];
        return new Decision('approved', null, ...$facts);
    }

    private static function word(\stdClass $answer): string
    {
        $word = $answer->login ?? null;
        if (!in_array($word, ['success', 'failure', 'wait'], true)) {
            throw new OddAnswer('login is none of success, failure and wait');
        }
        return $word;
    }

    private static function textOf(\stdClass $answer, string $name): ?string
    {
        $value = $answer->{$name} ?? null;
        return is_string($value) ? $value : null;
    }
}
