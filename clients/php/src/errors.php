<?php

declare(strict_types=1);

/*
 * Errors as types. Catch TwoefayError for all of them; let nobody in after any of them.
 *
 * Problems of the relay are told apart by their `code`, never by the status alone: an unknown route
 * is 404, too, and says nothing about a user. WORD is the name of an error in all languages of the
 * clients (clients/README.md).
 */

namespace Twoefay;

/** The base of all errors of this package. */
class TwoefayError extends \Exception
{
    public const WORD = 'error';
}

/** The relay gave no answer. */
final class Unreachable extends TwoefayError
{
    public const WORD = 'unreachable';
}

/** The answer is none of a relay: a proxy has answered, or the relay lies. It says nothing. */
final class OddAnswer extends TwoefayError
{
    public const WORD = 'odd_answer';

    public function __construct(string $what, public readonly ?int $status = null)
    {
        parent::__construct($status === null ? $what : "$what (status $status)");
    }
}

/**
 * A check of this package failed: the relay may be dishonest. `reason` is a stable word.
 *
 * `field` is a name as the relay sent it: log the message, where it cannot write a line of its own.
 */
abstract class CheckError extends TwoefayError
{
    public function __construct(
        public readonly string $reason,
        public readonly ?string $field = null,
    ) {
        parent::__construct($field === null ? $reason : "$reason: " . Texts::oneLine($field));
    }
}

/** The relay reports a success that the phone's receipt does not prove. */
final class ReceiptError extends CheckError
{
    public const WORD = 'receipt';
}

/** A phone's key is not proved by a binding under this website's `k`. */
final class BindingError extends CheckError
{
    public const WORD = 'binding';
}

/** A webhook is not from the relay, or too old. Answer 400. */
final class WebhookError extends CheckError
{
    public const WORD = 'webhook';
}

/** The relay refused, with a problem document. Subclasses stand for its codes. */
class Refused extends TwoefayError
{
    public const WORD = 'refused';

    /** The status that belongs to the code; 0 for codes that this package does not know. */
    public const STATUS = 0;

    /** The classes of the codes that this package knows. */
    public const KINDS = [
        Malformed::class, Invalid::class, Unauthenticated::class, Forbidden::class,
        ApprovalRequired::class, CodesLocked::class, NotFound::class, RouteNotFound::class,
        MethodNotAllowed::class, Conflict::class, AlreadyDecided::class, ShownOnce::class,
        TooLarge::class, UnsupportedType::class, IdempotencyMismatch::class, Limited::class,
        Internal::class, Unavailable::class,
    ];

    /** The code of the problem, of which the class of a later code knows nothing else. */
    public readonly string $problemCode;

    public readonly string $detail;

    /** @var array<string, string> each wrong parameter, with the code of its fault */
    public readonly array $faults;

    public readonly ?string $requestId;

    /** Seconds after which the same call may succeed. */
    public readonly ?int $retryAfter;

    public function __construct(
        public readonly \stdClass $problem,
        public readonly int $status,
        Answer $answer,
    ) {
        $this->problemCode = $problem->code;
        $this->detail = is_string($problem->detail ?? null) ? $problem->detail : '';
        $this->faults = self::faultsOf($problem->errors ?? null);
        $this->requestId = $answer->headers['request-id'] ?? null;
        $wish = $answer->headers['retry-after'] ?? '';
        $this->retryAfter = preg_match('/\A[0-9]{1,9}\z/', $wish) === 1 ? (int) $wish : null;
        $faults = '';
        foreach ($this->faults as $name => $fault) {
            $faults .= ", $name: $fault";
        }
        $request = $this->requestId ?? 'unknown';
        $text = "$status $this->problemCode: $this->detail$faults (request $request)";
        parent::__construct($text);
    }

    /** @return array<string, string> */
    private static function faultsOf(mixed $errors): array
    {
        $faults = [];
        foreach (is_array($errors) ? $errors : [] as $fault) {
            $name = $fault->parameter ?? null;
            $code = $fault->code ?? null;
            if (is_string($name) && is_string($code)) {
                $faults[$name] = $code;
            }
        }
        return $faults;
    }
}

final class Malformed extends Refused
{
    public const WORD = 'malformed';
    public const STATUS = 400;
}

/** `faults` names each wrong parameter with the code of its fault. */
final class Invalid extends Refused
{
    public const WORD = 'invalid';
    public const STATUS = 400;
}

final class Unauthenticated extends Refused
{
    public const WORD = 'unauthenticated';
    public const STATUS = 401;
}

final class Forbidden extends Refused
{
    public const WORD = 'forbidden';
    public const STATUS = 403;
}

/** The user has to approve first: show the number, wait for the challenge, call again with it. */
final class ApprovalRequired extends Refused
{
    public const WORD = 'approval_required';
    public const STATUS = 403;

    /** Empty if the relay names none that could stand in a path. */
    public function challenge(): string
    {
        return $this->matching('challenge', Texts::ID) ?? '';
    }

    /** Null if the relay names none that could stand in a page. */
    public function number(): ?string
    {
        return $this->matching('number', Texts::NUMBER);
    }

    private function matching(string $name, string $pattern): ?string
    {
        $value = $this->problem->{$name} ?? null;
        return is_string($value) && preg_match($pattern, $value) === 1 ? $value : null;
    }
}

/** Too many codes were wrong. Let the user approve with the phone. */
final class CodesLocked extends Refused
{
    public const WORD = 'codes_locked';
    public const STATUS = 403;
}

/** The user or challenge is unknown, or belongs to another website. */
final class NotFound extends Refused
{
    public const WORD = 'not_found';
    public const STATUS = 404;
}

/** The relay has no such route: a fault of this program or of the address, never of a user. */
final class RouteNotFound extends Refused
{
    public const WORD = 'route_not_found';
    public const STATUS = 404;
}

final class MethodNotAllowed extends Refused
{
    public const WORD = 'method_not_allowed';
    public const STATUS = 405;
}

/** The name, address or number is in use; or, with `retryAfter`, the same call still runs. */
final class Conflict extends Refused
{
    public const WORD = 'conflict';
    public const STATUS = 409;
}

final class AlreadyDecided extends Refused
{
    public const WORD = 'already_decided';
    public const STATUS = 409;
}

/** The call was done, but its answer with the secret was lost. */
final class ShownOnce extends Refused
{
    public const WORD = 'shown_once';
    public const STATUS = 409;
}

final class TooLarge extends Refused
{
    public const WORD = 'too_large';
    public const STATUS = 413;
}

final class UnsupportedType extends Refused
{
    public const WORD = 'unsupported_type';
    public const STATUS = 415;
}

final class IdempotencyMismatch extends Refused
{
    public const WORD = 'idempotency_mismatch';
    public const STATUS = 422;
}

/** A limit is reached. The client never sleeps for it: tell the visitor `retryAfter` seconds. */
final class Limited extends Refused
{
    public const WORD = 'limited';
    public const STATUS = 429;
}

final class Internal extends Refused
{
    public const WORD = 'internal';
    public const STATUS = 500;
}

final class Unavailable extends Refused
{
    public const WORD = 'unavailable';
    public const STATUS = 503;
}
