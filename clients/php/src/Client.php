<?php

declare(strict_types=1);

namespace Twoefay;

/**
 * Sends calls, and repeats them while that may help.
 *
 * A repetition has no second effect: a POST keeps its Idempotency-Key, and a deleted object stays
 * deleted. 429 is never repeated, since that would sleep in the visitor's request.
 */
final class Client
{
    /** Counts from the first failure: a held request may be lost after a minute. */
    private const PATIENCE = 3.0;

    public function __construct(
        private readonly Transport $transport,
        private readonly World $world,
    ) {
    }

    /** The object of an answer with one of these statuses. */
    public function send(Call $call, int ...$statuses): \stdClass
    {
        // /auth changes nothing, and takes no key: a stored answer would say `wait` for ever.
        if ($call->method === 'POST' && $call->path !== '/auth') {
            $call->headers['idempotency-key'] = bin2hex($this->world->random(16));
        }
        $end = INF;
        $pause = 0.1;
        while (true) {
            try {
                $answer = $this->transport->send($call);
                if (in_array($answer->status, $statuses, true)) {
                    return $answer->object(...$statuses);
                }
                $error = $answer->error();
            } catch (Unreachable $error) {
            }
            $now = $this->world->monotonic();
            $end = min($end, $now + self::PATIENCE);
            $random = 1 + ord($this->world->random(1)) / 512;
            $wait = max($pause * $random, (float) (self::wish($error) ?? 0));
            if (!self::mayPass($error, $call->method) || $now + $wait > $end) {
                throw $error;
            }
            $this->world->pause($wait);
            $pause *= 2;
        }
    }

    /** Whether the same call may succeed soon, and may be repeated. */
    public static function mayPass(TwoefayError $error, string $method = 'POST'): bool
    {
        return match (true) {
            $error instanceof Unavailable => true,
            // The first attempt still runs.
            $error instanceof Conflict => $error->retryAfter !== null,
            // A proxy got no answer from the relay.
            $error instanceof OddAnswer =>
                in_array($error->status, [502, 503, 504], true) && $method !== 'PATCH',
            // It may have been done, and some PATCHes must not be done twice.
            $error instanceof Unreachable => $method !== 'PATCH',
            default => false,
        };
    }

    /** The seconds after which the relay wants the call again. */
    public static function wish(TwoefayError $error): ?int
    {
        return $error instanceof Refused ? $error->retryAfter : null;
    }
}
