<?php

declare(strict_types=1);

namespace Twoefay;

/**
 * Where a website keeps pinned keys, secrets of open enrolments and open requests.
 *
 * A store is what makes the relay untrusted: keep it in the website's own database. SQLiteStore is
 * for one machine, DatabaseStore for PostgreSQL, MySQL and MariaDB, MemoryStore for tests. Each
 * method is atomic, for all processes of the website.
 */
interface Store
{
    public const REQUEST_LIFE = 86_400;
    public const SECRET_LIFE = 86_400;
    public const EVENT_LIFE = 30 * 86_400;

    /** Stores the user's id at the relay; a later one replaces it. */
    public function addUser(string $username, string $token): void;

    public function token(string $username): ?string;

    /** Stores the `k` of an open enrolment. A user may have several. */
    public function addSecret(string $username, string $k, int $now): void;

    /**
     * The user's `k`s of the last day: later a code that somebody kept must not count.
     *
     * @return list<string>
     */
    public function secrets(string $username, int $now): array;

    /**
     * Pins a key and deletes every `k` of the user. False, and nothing is changed, if this `k` is
     * not there any more, or if the phone has a key already: it is never replaced.
     *
     * @param array<string, mixed> $jwk that of a web phone has further members, `app` and
     *                                  `webauthn`, which belong to it: keep all of them
     */
    public function pin(string $username, string $device, array $jwk, string $k): bool;

    /**
     * The pinned keys of this user by device, and of nobody else. Unpinned ones are left out.
     *
     * @return array<string, array<string, mixed>>
     */
    public function pins(string $username): array;

    /** Whether a phone of this user was ever pinned, even if it was unpinned since. */
    public function wasPinned(string $username): bool;

    /**
     * Revokes a key for ever, but keeps its row: `wasPinned` must stay true.
     *
     * Deletes every `k` of the user, too: the phone may have read one, and be pinned later. If the
     * phone was unpinned before, they stay: the relay's webhook may come after a new code.
     */
    public function unpin(string $username, string $device): void;

    /** The same, for the user with this id at the relay; nothing if there is none. */
    public function unpinByToken(string $token, string $device): void;

    /** Deletes everything about the user, also that a phone was pinned. */
    public function forget(string $username): void;

    /** Stores the request of a new login. */
    public function open(string $request, int $now): void;

    /** Removes a request. True only for the one call that removed it. */
    public function spend(string $request): bool;

    public function hasSeen(string $event): bool;

    /** Stores the id of a webhook that was handled. */
    public function see(string $event, int $now): void;
}
