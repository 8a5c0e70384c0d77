// Written by dev/embed-schema from schema.sql. Do not edit.
enum SchemaText {
    static let sql = #"""
        -- Twoefay's tables and views, for SQLite and MariaDB alike.
        --
        -- Words for MariaDB alone stand in /*M! … */, which MariaDB runs and SQLite passes over; words for SQLite alone stand
        -- in /*S! … */, which the relay uncomments when it speaks to SQLite. To load this file by hand use `twoefay migrate`.
        --
        -- Ids are 16 bytes. On the wire, in the log and in the views they are the same 32 hexadecimal digits: look a row up
        -- with WHERE id = x'0f3a…'. Times are UTC with milliseconds. There are no foreign keys: every change is one guarded
        -- script of the relay, and on a Galera cluster foreign keys make conflicts out of rows that nobody wrote.

        -- The websites that may ask. A row is never deleted, so that a name is never given to another website.
        CREATE TABLE IF NOT EXISTS website (
            id binary(16) NOT NULL PRIMARY KEY,
            name varchar(64) NOT NULL,
            display_name varchar(128) NOT NULL,
            state varchar(16) NOT NULL,             -- active, disabled
            policy text NOT NULL,                   -- JSON: the policies that differ from the installation's defaults
            callback varchar(2048),
            created_at datetime(3) NOT NULL,
            operation binary(16) NOT NULL,          -- the operation that changed this row last (see audit)
            mac binary(36),                         -- of the relay that wrote the row (see threat-model.md)
            UNIQUE (name)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        -- The keys that a website's client certificates may have; two while a certificate is renewed.
        CREATE TABLE IF NOT EXISTS website_key (
            thumbprint binary(32) NOT NULL PRIMARY KEY,     -- SHA-256 of the SubjectPublicKeyInfo
            website_id binary(16) NOT NULL,
            created_at datetime(3) NOT NULL,
            mac binary(36)                          -- of the relay that wrote the row (see threat-model.md)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        -- How it stands with the callbacks of a website. The row is there while the website has a callback.
        CREATE TABLE IF NOT EXISTS callback (
            website_id binary(16) NOT NULL PRIMARY KEY,
            secrets blob NOT NULL,                  -- sealed: the secrets that are signed with, the newest first, two at most
            sealed_by varchar(64) NOT NULL,         -- under which key
            former_until datetime(3),               -- until when the second is signed with, too
            state varchar(16) NOT NULL,             -- active, disabled
            stopped_by varchar(16),                 -- of a disabled one: failures, gone, operator
            since datetime(3),                      -- of a disabled one: since when; else: nothing has arrived since then,
            tries int NOT NULL,                     -- in so many tries
            operation binary(16) NOT NULL
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        -- The users of each website. The token is what the website got at /register; logs and audit know the id alone.
        CREATE TABLE IF NOT EXISTS user (
            id binary(16) NOT NULL PRIMARY KEY,
            token binary(16) NOT NULL,
            website_id binary(16) NOT NULL,
            username varchar(64) NOT NULL,
            email varchar(254),
            phone varchar(16),
            display_name varchar(128),
            language varchar(256),                  -- a tag of BCP 47, or a whole Accept-Language
            state varchar(16) NOT NULL,             -- active; locked (too many wrong numbers), frozen ("this was not me")
            stopped_by varchar(16),                 -- of one locked or frozen: phone (its answers), or operator, who alone undoes it
            code_failures int NOT NULL DEFAULT 0,   -- wrong codes in a row, over all code factors,
            code_failures_kept int NOT NULL DEFAULT 0,  -- of these, guesses at factors that are gone: no right code clears them
            code_failed_at datetime(3),
            codes_locked_at datetime(3),            -- since when no code is taken; signed approvals are
            proved_at datetime(3),                  -- since when a factor of the user's own is bound: a further one needs approval
            challenge_id binary(16),                -- the newest challenge; after keep.logins its row is gone
            created_at datetime(3) NOT NULL,
            operation binary(16) NOT NULL,
            mac binary(36),                         -- of the relay that wrote the row (see threat-model.md)
            UNIQUE (token),
            UNIQUE (website_id, username),
            UNIQUE (website_id, email),
            UNIQUE (website_id, phone)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        -- Codes with which a phone is bound, as digests: the row cannot be used to bind one.
        CREATE TABLE IF NOT EXISTS activation (
            digest binary(32) NOT NULL PRIMARY KEY,         -- SHA-256 of the code
            user_id binary(16) NOT NULL,
            created_at datetime(3) NOT NULL,
            expires_at datetime(3) NOT NULL,
            used_at datetime(3),
            approval varchar(16),                   -- who approved of a further phone: user, website (its policy), operator
            operation binary(16) NOT NULL,
            mac binary(36)                          -- of the relay that wrote the row (see threat-model.md)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        CREATE INDEX IF NOT EXISTS activation_user ON activation (user_id);
        CREATE INDEX IF NOT EXISTS activation_age ON activation (expires_at);

        -- The phones. A phone that a website binds itself (answers: website) has a push token and no key.
        CREATE TABLE IF NOT EXISTS device (
            id binary(16) NOT NULL PRIMARY KEY,
            user_id binary(16) NOT NULL,
            state varchar(16) NOT NULL,             -- waiting, active, suspended, revoked
            stopped_by varchar(16),                 -- of one suspended or revoked: phone, code, website, or operator, who alone undoes it
            name varchar(64),
            platform varchar(16) NOT NULL,          -- ios, android, web, other
            environment varchar(16) NOT NULL,       -- production, sandbox
            push_token varchar(2048) NOT NULL,
            push_token_at datetime(3) NOT NULL,
            public_key binary(65),                  -- P-256, uncompressed
            thumbprint binary(32),                  -- SHA-256 of the SubjectPublicKeyInfo
            revocation binary(32),                  -- SHA-256 of the revocation code, which is drawn when the phone is bound
            binding text,                           -- what the phone signed for the website under the website's own k
            approval binary(16),                    -- while it is waiting: the challenge with which its user approves of it
            failures int NOT NULL,                  -- wrong numbers since the last right one
            failed_at datetime(3),
            created_at datetime(3) NOT NULL,
            last_seen_at datetime(3),
            operation binary(16) NOT NULL,
            mac binary(36),                         -- of the relay that wrote the row (see threat-model.md)
            UNIQUE (thumbprint),                    -- one key an enrolment: it names the phone where there is no certificate
            UNIQUE (revocation)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        CREATE INDEX IF NOT EXISTS device_user ON device (user_id);

        -- What a user has besides phones: where codes come from, and what they are checked with. An active row counts; a waiting
        -- one takes its place once a first code has confirmed it.
        CREATE TABLE IF NOT EXISTS factor (
            id binary(16) NOT NULL PRIMARY KEY,
            user_id binary(16) NOT NULL,
            kind varchar(16) NOT NULL,              -- totp, hotp, sms, mail, recovery
            state varchar(16) NOT NULL,             -- waiting, active
            secret blob,                            -- sealed: what codes are made of; null for recovery codes
            sealed_by varchar(64),                  -- under which key
            algorithm varchar(8) NOT NULL,          -- sha1, sha256, sha512
            digits int NOT NULL,
            period int,                             -- of totp: seconds that a code is shown
            counter bigint NOT NULL,                -- totp: the last step accepted; hotp: the next expected; sms, mail: the next sent
            address varchar(254),                   -- of sms and mail: where codes go
            failures int NOT NULL,                  -- wrong codes of this factor since its last right one; the user's row counts them all
            failed_at datetime(3),
            approval binary(16),                    -- the challenge with which its user approved of it
            created_at datetime(3) NOT NULL,
            confirmed_at datetime(3),
            operation binary(16) NOT NULL,
            mac binary(36),                         -- of the relay that wrote the row (see threat-model.md)
            UNIQUE (user_id, kind, state)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        CREATE INDEX IF NOT EXISTS factor_sealed ON factor (sealed_by);

        -- The codes that were sent, as counters: a code follows from its factor's secret and its counter, and is kept nowhere.
        CREATE TABLE IF NOT EXISTS sent_code (
            factor_id binary(16) NOT NULL,
            counter bigint NOT NULL,
            challenge_id binary(16),                -- null: to confirm the address
            sent_at datetime(3) NOT NULL,
            expires_at datetime(3) NOT NULL,
            mac binary(36),                         -- of the relay that wrote the row (see threat-model.md)
            PRIMARY KEY (factor_id, counter)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        CREATE INDEX IF NOT EXISTS sent_code_challenge ON sent_code (challenge_id);

        -- Recovery codes, as digests: a row cannot be used to log in.
        CREATE TABLE IF NOT EXISTS recovery_code (
            user_id binary(16) NOT NULL,
            digest binary(32) NOT NULL,
            used_at datetime(3),
            mac binary(36),                         -- of the relay that wrote the row (see threat-model.md)
            PRIMARY KEY (user_id, digest)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        -- Text messages by day or hour (UTC) and by whom they were for: limits and costs are counted here.
        CREATE TABLE IF NOT EXISTS text_tally (
            period varchar(13) NOT NULL,            -- 2026-11-22, or 2026-11-22 09
            scope varchar(32) NOT NULL,             -- '' (all), the beginning of numbers (+49), or the id of a user
            messages int NOT NULL,                  -- that were begun: these are limited
            sent int NOT NULL,                      -- that gateways took; this, parts and cost of days and beginnings alone
            parts int NOT NULL,
            cost bigint NOT NULL,                   -- in millionths of whatever the gateways are paid in
            PRIMARY KEY (period, scope)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        -- The logins that were asked for, and have not been over for longer than keep.logins (see the settings).
        CREATE TABLE IF NOT EXISTS challenge (
            id binary(16) NOT NULL PRIMARY KEY,
            website_id binary(16) NOT NULL,
            user_id binary(16) NOT NULL,
            state varchar(16) NOT NULL,             -- asked, sent; answered, expired, cancelled, failed never change again
            decision varchar(16),                   -- approve, deny, fraud
            reason varchar(16),
            policy text NOT NULL,                   -- JSON: all policies as they were when it was asked
            context blob NOT NULL,                  -- JSON: what the person is shown, byte for byte
            nonce binary(16) NOT NULL,
            number varchar(6),
            factor varchar(16),                     -- the factor that decided, or the one under way
            proof varchar(16),                      -- signed, certificate, website, code
            device_id binary(16),                   -- the phone that decided
            receipt text,                           -- what that phone signed, for the website to check
            uv varchar(16),                         -- how that phone made sure of its owner: none, passcode, biometric
            approves binary(32),                    -- of an approval: the digest of what it is for
            used_by binary(16),                     -- of an approval: the operation that it was used for
            language varchar(256),                  -- Accept-Language of the request, for a user without a language
            known int NOT NULL DEFAULT 0,           -- 1: asked from a browser that the website knows as the user's
            asked_at datetime(3) NOT NULL,
            expires_at datetime(3) NOT NULL,
            decided_at datetime(3),
            operation binary(16) NOT NULL,
            mac binary(36)                          -- of the relay that wrote the row (see threat-model.md)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        CREATE INDEX IF NOT EXISTS challenge_user ON challenge (user_id, decided_at);
        CREATE INDEX IF NOT EXISTS challenge_asked ON challenge (user_id, asked_at);
        CREATE INDEX IF NOT EXISTS challenge_age ON challenge (asked_at);

        -- What was tried under each challenge, in order.
        CREATE TABLE IF NOT EXISTS step (
            challenge_id binary(16) NOT NULL,
            ordinal int NOT NULL,
            factor varchar(16) NOT NULL,
            state varchar(16) NOT NULL,             -- queued, sent, seen; refused, undeliverable, expired, answered, skipped never change again
            at datetime(3) NOT NULL,
            reason varchar(64),                     -- why nothing came of it, mostly in the words of the service that carries it
            PRIMARY KEY (challenge_id, ordinal)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        -- What is still to be done, written with the change that calls for it. A relay leases a row before it acts on it.
        CREATE TABLE IF NOT EXISTS outbox (
            id binary(16) NOT NULL PRIMARY KEY,     -- of a push: its apns-id; of a callback: its webhook-id
            kind varchar(16) NOT NULL,              -- push, mail, sms, callback; next: the next factor begins; expiry
            event varchar(32),                      -- of a callback or mail: what it tells
            user_id binary(16),                     -- of a callback or mail: about whom
            website_id binary(16),                  -- of a callback: who is told,
            place int,                              -- in which order of those about one challenge, the lowest first,
            call_at datetime(3),                    -- and when next; null: dead
            challenge_id binary(16),
            device_id binary(16),
            factor_id binary(16),                   -- of a code: which factor's,
            counter bigint,                         -- and which code of it
            address varchar(254),                   -- of a mail or sms: where it goes
            language varchar(256),
            created_at datetime(3),
            expires_at datetime(3),                 -- nothing is sent after it
            doubted_at datetime(3),                 -- since when it may have been taken over, or not: it is sent once more at most
            dead_at datetime(3),                    -- since when nobody tries any more: an operator may (twoefay outbox)
            reason varchar(64),                     -- what came of the last try; forged: no relay wrote the row so
            due_at datetime(3),                     -- null: dead, or a callback
            attempts int NOT NULL,
            holder binary(16),                      -- the relay that acts on it now
            claim binary(16),                       -- with which claim it took the row
            mac binary(36)                          -- of the relay that wrote the row (see threat-model.md)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        CREATE INDEX IF NOT EXISTS outbox_due ON outbox (due_at, dead_at, kind);
        CREATE INDEX IF NOT EXISTS outbox_call ON outbox (website_id, dead_at, call_at);
        CREATE INDEX IF NOT EXISTS outbox_challenge ON outbox (challenge_id);
        CREATE INDEX IF NOT EXISTS outbox_claim ON outbox (claim);
        CREATE INDEX IF NOT EXISTS outbox_user ON outbox (user_id);

        -- The relays that run. Each moves its beat; one whose beat stands still is dead, and the others take its rows.
        CREATE TABLE IF NOT EXISTS relay (
            id binary(16) NOT NULL PRIMARY KEY,
            beat bigint NOT NULL,
            started_at datetime(3) NOT NULL
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        -- What one relay does for all of them, as long as it lives: to take out of the store what nobody needs any more.
        CREATE TABLE IF NOT EXISTS chore (
            name varchar(32) NOT NULL PRIMARY KEY,  -- tidy
            holder binary(16)                       -- the relay that does it; null, or one without a row: the next one takes it
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        -- The answers kept for requests that come again under the same Idempotency-Key.
        CREATE TABLE IF NOT EXISTS idempotency (
            website_id binary(16) NOT NULL,
            digest binary(32) NOT NULL,             -- SHA-256 of route and key
            fingerprint binary(32) NOT NULL,        -- SHA-256 of the body
            state varchar(16) NOT NULL,             -- running, done, shown (held a secret and is not shown again)
            operation binary(16) NOT NULL,
            holder binary(16),                      -- the relay that runs it now
            status int,
            answer blob,                            -- sealed
            created_at datetime(3) NOT NULL,
            mac binary(36),                         -- of the relay that wrote the row (see threat-model.md)
            PRIMARY KEY (website_id, digest)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        CREATE INDEX IF NOT EXISTS idempotency_age ON idempotency (created_at);

        -- The random secrets of operations that may be repeated: what they show once (codes, keys) is derived from it, so a
        -- repetition shows the same. A row is dropped when its answer was shown, or at expires_at: a day after the request; of a
        -- phone's revocation code, ten minutes after it was bound. A secret is sealed for its operation, verb, user and website,
        -- and opens for nothing else.
        CREATE TABLE IF NOT EXISTS operation_secret (
            operation binary(16) NOT NULL PRIMARY KEY,      -- of a phone: the operation that used its activation code
            sealed blob NOT NULL,
            sealed_by varchar(64) NOT NULL,         -- under which key
            expires_at datetime(3) NOT NULL
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        CREATE INDEX IF NOT EXISTS operation_secret_age ON operation_secret (expires_at);

        -- Every change, once, for as long as keep.audit says. A script that was committed is known by its operation here. Relays
        -- read on from the highest id that they know, for who waits. In a cluster each node counts in steps of its own: the order
        -- of ids is none of things that happened at different relays, and there are gaps. Go by `at`.
        CREATE TABLE IF NOT EXISTS audit (
            id /*M! bigint NOT NULL AUTO_INCREMENT */ /*S! INTEGER */ PRIMARY KEY,
            operation binary(16) NOT NULL,
            at datetime(3) NOT NULL,
            event varchar(32) NOT NULL,
            website_id binary(16),
            user_id binary(16),
            challenge_id binary(16),
            device_id binary(16),
            outcome varchar(32),
            proof varchar(16),
            note varchar(512),                      -- of an adopted row: which one, and the operator's reason
            UNIQUE (operation)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        -- For people: the users of all websites and their newest phone, under the names they had in the original.
        CREATE VIEW IF NOT EXISTS Users AS
        SELECT u.username, u.email, u.phone, lower(hex(u.token)) AS id_token,
            (SELECT d.push_token FROM device d WHERE d.user_id = u.id AND d.state = 'active'
             ORDER BY d.created_at DESC, d.id LIMIT 1) AS dev_token,
            w.name AS website, u.created_at
        FROM user u JOIN website w ON w.id = u.website_id;

        -- For people: how many logins each website asked for in each hour, and how they ended, as far back as keep.logins.
        CREATE VIEW IF NOT EXISTS LoginsByHour AS
        SELECT w.name AS website, substr(c.asked_at, 1, 13) AS hour, count(*) AS logins,
            sum(CASE WHEN c.decision = 'approve' THEN 1 ELSE 0 END) AS approved,
            sum(CASE WHEN c.decision = 'deny' THEN 1 ELSE 0 END) AS denied,
            sum(CASE WHEN c.decision = 'fraud' THEN 1 ELSE 0 END) AS fraud,
            sum(CASE WHEN c.state = 'expired' THEN 1 ELSE 0 END) AS expired,
            sum(CASE WHEN c.state IN ('cancelled', 'failed') THEN 1 ELSE 0 END) AS other,
            sum(CASE WHEN c.decided_at IS NULL THEN 1 ELSE 0 END) AS open
        FROM challenge c JOIN website w ON w.id = c.website_id
        GROUP BY w.name, substr(c.asked_at, 1, 13);

        -- For people: the logins that wait for an answer now.
        CREATE VIEW IF NOT EXISTS OpenChallenges AS
        SELECT lower(hex(c.id)) AS challenge, w.name AS website, u.username, c.state, c.factor, c.asked_at, c.expires_at
        FROM challenge c JOIN website w ON w.id = c.website_id JOIN user u ON u.id = c.user_id
        WHERE c.decided_at IS NULL;

        -- For people: the audit with ids as the wire and the log write them. ORDER BY at, id.
        CREATE VIEW IF NOT EXISTS AuditTrail AS
        SELECT a.at, a.id, a.event, w.name AS website, lower(hex(a.user_id)) AS user,
            lower(hex(a.challenge_id)) AS challenge, lower(hex(a.device_id)) AS device, a.outcome, a.proof
        FROM audit a LEFT JOIN website w ON w.id = a.website_id;
        """#
}
