<?php

declare(strict_types=1);

namespace Twoefay;

/** What the visitor is told while a login is open. */
final class Page
{
    public function __construct(
        public readonly string $message = '',
        public readonly int $status = 200,
        public readonly bool $ended = false,
        public readonly ?int $retryAfter = null,
    ) {
    }

    /** The page after a decision that is no approval. */
    public static function ofDecision(Decision $decision, bool $isCode): self
    {
        if ($decision->ended) {
            return new self('The login was not approved.', 403, ended: true);
        }
        return new self($isCode ? 'This code is wrong.' : '');
    }

    /** The page after an error. Nobody is let in, and the log has the reason. */
    public static function ofError(TwoefayError $error): self
    {
        if ($error instanceof Limited) {
            $pause = $error->retryAfter ?: 5;
            $message = "Too many attempts. Try again in $pause seconds.";
            return new self($message, 429, retryAfter: $pause);
        }
        if ($error instanceof CodesLocked) {
            return new self('No code is accepted at present. Answer on your phone.', 403);
        }
        if ($error instanceof Invalid) {
            return new self('This input was not accepted.', 400);
        }
        if ($error instanceof NotFound) { // the relay has deleted the challenge, or the user
            self::log('second factor', $error);
            return new self('Log in again.', 403, ended: true);
        }
        if ($error instanceof AlreadyDecided) { // a code came late: the page asks how it ended
            return new self();
        }
        if ($error instanceof CheckError) {
            self::log('login refused, the relay\'s answer is not proved', $error);
            return new self('The login could not be verified.', 403, ended: true);
        }
        self::log('second factor', $error);
        $message = 'The second factor cannot be reached at present. Try again.';
        return new self($message, 503, retryAfter: 5);
    }

    /** The relay's texts must not write lines of their own into the log. */
    private static function log(string $what, TwoefayError $error): void
    {
        error_log("twoefay: $what: " . Texts::oneLine($error->getMessage()));
    }
}
