<?php

declare(strict_types=1);

namespace Twoefay;

/**
 * The waiting login in the visitor's PHP session.
 *
 * PHP locks a session from `session_start` on, so all other requests of the visitor wait: it is
 * closed while the relay is asked how things stand. Only the submission of the page keeps the lock.
 * Then a second submission waits for the first, and finds what that has left.
 *
 * The session gets a new id after the password and after the approval: somebody who put an id into
 * this browser before is not logged in with it. The former session keeps where it went, for the
 * second of two submissions: a browser drops the answer to the first, with its cookie. For some
 * seconds the former id, with the token of the form, still leads to the new one. Only here and in
 * `begin` is a cookie sent: a page that finds no session must not replace that of a later one.
 */
final class VisitorSession
{
    private const KEY = 'twoefay';

    /**
     * The seconds in which one process gets from one session to the next, and in which a second
     * submission is taken for the same click.
     */
    private const MOMENT = 5.0;

    /** @return array<string, mixed>|null the value, with the session locked; null without one */
    public function open(): ?array
    {
        $id = $_COOKIE[session_name()] ?? null;
        if (session_status() !== PHP_SESSION_ACTIVE) {
            if (!is_string($id) || !self::start($id, withCookie: false)) {
                return null;
            }
        }
        $value = $_SESSION[self::KEY] ?? null;
        return is_array($value) ? $value : null;
    }

    /** Stores the session and ends the lock. */
    public function close(): void
    {
        if (session_status() === PHP_SESSION_ACTIVE) {
            session_write_close();
        }
    }

    /**
     * Begins an empty session with this value, and with a cookie that has all its attributes: that
     * of a session which the website has open may have none.
     *
     * @param array<string, mixed> $value
     */
    public function begin(array $value): void
    {
        if (session_status() === PHP_SESSION_ACTIVE) {
            session_destroy();
        }
        self::start(null, withCookie: true);
        $_SESSION = [self::KEY => $value];
        session_write_close();
    }

    /** Forgets the value of the open session. */
    public function forget(): void
    {
        unset($_SESSION[self::KEY]);
    }

    /**
     * Moves to an empty session with a new id, lets `$fill` fill it, and leaves a value behind, to
     * which it adds the id (`to`) and the time (`at`).
     *
     * @param array<string, mixed> $value
     * @param \Closure(): void     $fill
     */
    public function move(array $value, \Closure $fill): void
    {
        $to = session_create_id();
        $_SESSION = [self::KEY => $value + ['to' => $to, 'at' => microtime(true)]];
        session_write_close();
        self::start($to, withCookie: true, isNew: true);
        $_SESSION = [];
        $fill();
        $this->close();
    }

    /**
     * What another submission has left behind at this moment; null if there was none.
     *
     * Only a handler without locks lets two of them run at once. What this one has read is not
     * written: it would undo the other's.
     *
     * @return array<string, mixed>|null
     */
    public function left(string $token): ?array
    {
        $end = microtime(true) + self::MOMENT;
        do {
            session_abort();
            $value = $this->open();
            if (($value['token'] ?? null) !== $token) {
                return null;
            }
            if (isset($value['to'])) {
                return $value;
            }
            usleep(20_000);
        } while (microtime(true) < $end);
        return null;
    }

    /** Goes where the session has moved a moment ago, if that is still there. */
    public function follow(string $to, float $at): void
    {
        $this->close();
        do {
            if (microtime(true) - $at > self::MOMENT) {
                return;
            }
            $isThere = self::isFilled($to);
            // PHP has one session at a time. Between two of them, neither is locked.
            $isThere || usleep(20_000);
        } while (!$isThere);
        self::start($to, withCookie: true);
        session_abort();
    }

    private static function isFilled(string $id): bool
    {
        if (!self::start($id, withCookie: false)) {
            return false;
        }
        $isFilled = $_SESSION !== [];
        session_abort(); // without locks, to write it would undo what the other has written since
        return $isFilled;
    }

    /** Starts the session with this id, or a new one. False if there is no such session. */
    private static function start(?string $id, bool $withCookie, bool $isNew = false): bool
    {
        if ($id !== null && preg_match('/\A[A-Za-z0-9,-]{1,256}\z/', $id) !== 1) {
            return false;
        }
        session_id($id ?? '');
        $started = session_start([
            'use_cookies' => $withCookie ? '1' : '0',
            'use_only_cookies' => '1',
            'use_strict_mode' => $isNew ? '0' : '1', // a browser does not choose its id
            'cookie_httponly' => '1',
            'cookie_secure' => '1',
            'cookie_samesite' => 'Lax',
        ]);
        if (!$started) {
            throw new \RuntimeException('no session can be started');
        }
        if ($id !== null && session_id() !== $id) {
            session_destroy();
            return false;
        }
        return true;
    }
}
