// Written by dev/embed-schema from schema.sql. Do not edit.
enum SchemaText {
    static let sql = #"""
        -- Twoefay's tables and views, for SQLite and MariaDB alike.
        --
        -- Text in /*M! … */ is for MariaDB only, text in /*S! … */ for SQLite only. A new store is created from this file, an older
        -- one gets the numbered changes in Sources/Storage/Storage/SQL/Migrations. Do not load the file by hand, because SQLite would
        -- ignore its own parts; `twoefay migrate` does it.
        --
        -- An id is 16 bytes. The wire, the log and the views show it as 32 hexadecimal digits; find a row with
        -- WHERE id = x'0f3a…'. Times are UTC with milliseconds. There are no foreign keys: each change is one guarded script of
        -- the relay, and on a Galera cluster foreign keys cause conflicts between rows that nobody wrote.

        -- With the setting `seal: personal`, addresses, phone numbers, push tokens, contexts and receipts are sealed: their text is
        -- sealed:, the id of the key, and the seal. Rows of both forms may be in one table (see data-at-rest.md).

        -- The installation's epochs: one for each `twoefay restore` into this store; the newest one counts. Nonces, operations and
        -- kept answers of other epochs are refused. A store that was never restored has no row.
        CREATE TABLE IF NOT EXISTS installation_epoch (
            epoch binary(16) NOT NULL PRIMARY KEY,
            state varchar(16) NOT NULL,             -- restoring (no relay starts), ready
            source binary(32) NOT NULL,             -- SHA-256 of the copy that was put back
            began_at datetime(3) NOT NULL,          -- when the restore began; what it voids has this time
            mac binary(36)                          -- by the tool that wrote the row (see threat-model.md)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        -- The websites that may use the relay. A row is never deleted, so that no other website ever gets its name.
        CREATE TABLE IF NOT EXISTS website (
            id binary(16) NOT NULL PRIMARY KEY,
            name varchar(64) NOT NULL,
            display_name varchar(128) NOT NULL,
            state varchar(16) NOT NULL,             -- active, disabled, removed
            policy text NOT NULL,                   -- JSON: the policies that differ from the defaults of the installation
            webhook_url varchar(2048),              -- null: the website gets no webhooks
            created_at datetime(3) NOT NULL,
            operation binary(16) NOT NULL,          -- the last operation that changed the row (see audit)
            mac binary(36),                         -- by the relay that wrote the row (see threat-model.md)
            UNIQUE (name)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        -- The keys of a website's client certificates; two while a certificate is renewed.
        CREATE TABLE IF NOT EXISTS website_key (
            thumbprint binary(32) NOT NULL PRIMARY KEY,     -- SHA-256 of the SubjectPublicKeyInfo
            website_id binary(16) NOT NULL,
            created_at datetime(3) NOT NULL,
            not_before datetime(3),                 -- of the newest certificate of the key; null: unknown
            not_after datetime(3),
            issuer binary(32),                      -- SHA-256 of the public key of the authority that signed it
            serial varchar(40),                     -- hexadecimal
            ends_at datetime(3),                    -- the key is refused from then on; null: valid while its certificate is
            used_at datetime(3),                    -- the last request with the newest certificate, a few seconds late
            mac binary(36)                          -- by the relay that wrote the row (see threat-model.md)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        -- The former certificates of websites' keys, until they expire, for the revocation list of the websites' authority. A
        -- website that renews its certificate by itself keeps its key, and `website_key` then describes the new certificate.
        CREATE TABLE IF NOT EXISTS website_certificate (
            issuer binary(32) NOT NULL,             -- SHA-256 of the public key of the authority that signed it
            serial varchar(40) NOT NULL,            -- hexadecimal
            thumbprint binary(32) NOT NULL,         -- of the key
            website_id binary(16) NOT NULL,
            not_before datetime(3) NOT NULL,
            not_after datetime(3) NOT NULL,
            used_at datetime(3),                    -- the last request with the certificate, a few seconds late
            PRIMARY KEY (issuer, serial)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        CREATE INDEX IF NOT EXISTS website_certificate_key ON website_certificate (thumbprint);

        -- The webhook endpoint of a website. The row exists while the website has a webhook URL.
        CREATE TABLE IF NOT EXISTS webhook_endpoint (
            website_id binary(16) NOT NULL PRIMARY KEY,
            secrets blob NOT NULL,                  -- sealed: one or two signing secrets, the newest first
            sealed_by varchar(64) NOT NULL,         -- the id of the sealing key
            previous_until datetime(3),             -- the second secret is used until then
            state varchar(16) NOT NULL,             -- active, disabled
            disabled_by varchar(16),                -- of a disabled endpoint: failures, unsubscribed (410), operator
            disabled_at datetime(3),
            failing_since datetime(3),              -- the first failure since the last delivery; null: none
            failed_attempts int NOT NULL,           -- since then
            operation binary(16) NOT NULL,
            made_at datetime(3) NOT NULL,           -- when the newest secret was made
            fetched_at datetime(3)                  -- when the website fetched it last; null: it did not, so the relays make no other
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        -- The users of each website. The website got the token at /register; logs and audit show only the id.
        CREATE TABLE IF NOT EXISTS user (
            id binary(16) NOT NULL PRIMARY KEY,
            token binary(16) NOT NULL,
            website_id binary(16) NOT NULL,
            username varchar(64) NOT NULL,
            email varchar(512),                     -- or sealed
            phone varchar(192),                     -- or sealed
            display_name varchar(128),
            language varchar(256),                  -- a BCP 47 tag, or a whole Accept-Language
            state varchar(16) NOT NULL,             -- active, locked (too many wrong numbers), frozen (a fraud report), disabled (left the directory)
            stopped_by varchar(16),                 -- of a locked or frozen user: phone, or operator, who alone can undo it
            prior_state varchar(16),                -- of a disabled user: the state before, which returns with the user; null (no relay disabled the user): locked
            directory varchar(32),                  -- the source of users that owns the user; null: the website does
            directory_id varchar(64),               -- the id of the user's entry in that source
            policy text,                            -- JSON: the policies of the user's group that differ from the website's
            code_failures int NOT NULL DEFAULT 0,   -- wrong codes in a row, over all code factors
            code_failures_kept int NOT NULL DEFAULT 0,  -- of these, at removed factors: a right code does not clear them
            code_failed_at datetime(3),
            codes_locked_at datetime(3),            -- no code is accepted since then; signed approvals are
            proved_at datetime(3),                  -- the first factor was bound then: a further one needs approval
            identity_confirmed_at datetime(3),      -- an operator confirmed then that the person's identity was checked
            identity_by varchar(64),                -- the person who checked it
            identity_document varchar(256),         -- the document that was checked
            expires_at datetime(3),                 -- no login of the user succeeds from then on; null: the user does not expire
            expires_by varchar(16),                 -- who set that time: website, or operator, whose time a website can only shorten
            challenge_id binary(16),                -- the newest challenge, but no reminder about a recovery beside an open one; its row is deleted after retention.logins
            former_email varchar(512),              -- the mail address before the changes of the last days; null: never changed
            email_changed_at datetime(3),           -- the mail address was last changed or removed then
            created_at datetime(3) NOT NULL,
            operation binary(16) NOT NULL,
            mac binary(36),                         -- by the relay that wrote the row (see threat-model.md)
            UNIQUE (token),
            UNIQUE (website_id, username),
            UNIQUE (website_id, email),
            UNIQUE (website_id, phone),
            UNIQUE (website_id, directory, directory_id)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        CREATE INDEX IF NOT EXISTS user_expiry ON user (expires_at);
        CREATE INDEX IF NOT EXISTS user_state ON user (state);

        -- Activation codes, as digests: nobody can bind a phone with a row.
        CREATE TABLE IF NOT EXISTS activation (
            digest binary(32) NOT NULL PRIMARY KEY,         -- SHA-256 of the code
            user_id binary(16) NOT NULL,
            created_at datetime(3) NOT NULL,
            expires_at datetime(3) NOT NULL,
            used_at datetime(3),                    -- used, or made void
            approval varchar(16),                   -- who approved the further phone: user, website (its policy), operator; recovery: it replaces all others
            recovery_id binary(16),                 -- with the approval recovery: which one
            address varchar(512),                   -- of a mailed code: the recipient, or sealed; void once the user has another address
            operation binary(16) NOT NULL,
            mac binary(36)                          -- by the relay that wrote the row (see threat-model.md)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        CREATE INDEX IF NOT EXISTS activation_user ON activation (user_id);
        CREATE INDEX IF NOT EXISTS activation_age ON activation (expires_at);

        -- The phones. A phone that its website binds (policy answers: website) has a device token and no key.
        CREATE TABLE IF NOT EXISTS device (
            id binary(16) NOT NULL PRIMARY KEY,
            user_id binary(16) NOT NULL,
            state varchar(16) NOT NULL,             -- waiting, active, suspended, revoked
            stopped_by varchar(16),                 -- of a suspended or revoked phone: phone, code, website, or operator, who alone can undo it
            name varchar(64),
            platform varchar(16) NOT NULL,          -- ios, android, web, other
            environment varchar(16) NOT NULL,       -- production, sandbox
            push_token varchar(3072) NOT NULL,      -- or sealed
            push_token_at datetime(3) NOT NULL,
            public_key binary(65),                  -- P-256, uncompressed
            thumbprint binary(32),                  -- SHA-256 of the SubjectPublicKeyInfo
            agreement_key binary(65),               -- P-256, uncompressed: secrets are sealed to it; null: the phone has none
            secret_asked_at datetime(3),            -- the time in the phone's last request for a secret; earlier ones are replays
            revocation binary(32),                  -- SHA-256 of the revocation code, which is made when the phone is bound
            binding text,                           -- the JWS that the phone signed for the website at its binding
            approval binary(16),                    -- of a waiting phone: the challenge by which the user approves it
            failures int NOT NULL,                  -- wrong numbers since the last right one
            failed_at datetime(3),
            pin_key binary(65),                     -- the public key of the phone's PIN, P-256, uncompressed; null: no PIN is set
            puk_key binary(65),                     -- that of the PUK, which resets the PIN
            pin_version int NOT NULL DEFAULT 0,     -- counts the settings of the PIN
            pin_failures int NOT NULL DEFAULT 0,    -- wrong PINs since the last right one; 3 lock the PIN
            puk_failures int NOT NULL DEFAULT 0,    -- wrong PUKs since the last right one; 5 lock the PUK
            unlock_operation binary(16),            -- the operation that issued the help desk's code, whose secret it has; null: none is open
            unlock_counter bigint NOT NULL DEFAULT 0,   -- the number of these codes so far: the counter of the open one (HOTP)
            unlock_until datetime(3),               -- when the open code expires
            unlock_failures int NOT NULL DEFAULT 0, -- wrong codes since it was issued; 5 make it void
            login_successes int NOT NULL DEFAULT 0, -- challenges that this phone has approved
            login_failures int NOT NULL DEFAULT 0,  -- challenges that its answer ended otherwise: denied, or with a wrong number
            created_at datetime(3) NOT NULL,
            last_seen_at datetime(3),               -- an answer of the phone ended a challenge then
            pin_sequence bigint NOT NULL DEFAULT 0, -- the last statement about the relay's authority whose pin the phone holds
            verify_since datetime(3),               -- the store was restored then, and may not know that the phone was unbound; null: verified
            operation binary(16) NOT NULL,
            mac binary(36),                         -- by the relay that wrote the row (see threat-model.md)
            UNIQUE (thumbprint),                    -- one key for each enrolment: it identifies a phone without a certificate
            UNIQUE (revocation)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        CREATE INDEX IF NOT EXISTS device_user ON device (user_id);
        CREATE INDEX IF NOT EXISTS device_pins ON device (state, pin_sequence);

        -- The attestations of phones: what each phone sent when it was bound, and the relay's verdict. A row exists if the policy
        -- of the website was recorded or required then.
        CREATE TABLE IF NOT EXISTS attestation (
            device_id binary(16) NOT NULL PRIMARY KEY,
            user_id binary(16) NOT NULL,
            verdict varchar(16) NOT NULL,           -- valid, flawed (genuine, with faults), invalid, missing (none was sent)
            faults varchar(255) NOT NULL,           -- separated by commas (see attestation.md); empty: none
            facts text,                             -- JSON: what the platform attested; null: it is not genuine
            statement text,                         -- JSON: the attestation as the phone sent it; null: it is not genuine
            activation_code varchar(64) NOT NULL,   -- used up: a part of what was attested
            app_key binary(65),                     -- of App Attest: the key of assertions, P-256, uncompressed
            counter bigint NOT NULL,                -- of the last accepted assertion
            judged_at datetime(3) NOT NULL,
            operation binary(16) NOT NULL,          -- the one that bound the phone
            mac binary(36)                          -- by the relay that wrote the row (see threat-model.md)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        CREATE INDEX IF NOT EXISTS attestation_user ON attestation (user_id);

        -- The phones that are pages in a browser: what each said of its app and of the credential by which its authenticator checks
        -- the owner. A row exists if the phone said so when it was bound first, and never changes: another page is another key.
        CREATE TABLE IF NOT EXISTS web_phone (
            device_id binary(16) NOT NULL PRIMARY KEY,
            user_id binary(16) NOT NULL,
            app varchar(128) NOT NULL,              -- the origin of the page
            rp varchar(128),                        -- the domain of the credential; null, like the next two: the page has none
            credential varchar(256),                -- its id, base64url
            public_key binary(65),                  -- P-256, uncompressed
            is_apart smallint NOT NULL,             -- 1: its host was none of the relay's then
            operation binary(16) NOT NULL,          -- the one that bound the phone
            mac binary(36)                          -- by the relay that wrote the row (see threat-model.md)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        CREATE INDEX IF NOT EXISTS web_phone_user ON web_phone (user_id);

        -- The certificates that the phones' authority issued, until they expire, for its revocation list. A certificate counts only
        -- while its phone is active, whatever is in this table. The list also puts the certificates of stopped users and of
        -- disabled websites on hold, without a change here.
        CREATE TABLE IF NOT EXISTS certificate (
            serial varchar(40) NOT NULL PRIMARY KEY,    -- hexadecimal
            device_id binary(16) NOT NULL,
            tag varchar(32),                        -- of a tagged certificate; null: it authenticates the phone
            thumbprint binary(32),                  -- of a tagged certificate: SHA-256 of the SubjectPublicKeyInfo
            created_at datetime(3) NOT NULL,
            expires_at datetime(3) NOT NULL,
            revoked_at datetime(3),                 -- when the phone was unbound or suspended, or its user deleted
            is_on_hold int NOT NULL                 -- 1: the phone is suspended, and may be resumed
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        CREATE INDEX IF NOT EXISTS certificate_device ON certificate (device_id);
        CREATE INDEX IF NOT EXISTS certificate_expiry ON certificate (expires_at);
        CREATE INDEX IF NOT EXISTS certificate_revoked ON certificate (revoked_at);

        -- The further certificates of phones, one for each tag of the website's policy. Their keys sign documents. The serial
        -- numbers are in `certificate`, too.
        CREATE TABLE IF NOT EXISTS tagged_certificate (
            device_id binary(16) NOT NULL,
            tag varchar(32) NOT NULL,
            user_id binary(16) NOT NULL,
            is_raw int NOT NULL,                    -- 1: the tag was marked raw, so the key signs bare hashes
            serial varchar(40) NOT NULL,            -- hexadecimal
            thumbprint binary(32) NOT NULL,         -- SHA-256 of the SubjectPublicKeyInfo
            certificate text NOT NULL,              -- PEM
            asked_at datetime(3) NOT NULL,          -- the time in the phone's request; the next one must be later
            created_at datetime(3) NOT NULL,
            expires_at datetime(3) NOT NULL,
            mac binary(36),                         -- by the relay that wrote the row (see threat-model.md)
            PRIMARY KEY (device_id, tag),
            UNIQUE (thumbprint)                     -- a key has one purpose
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        CREATE INDEX IF NOT EXISTS tagged_certificate_user ON tagged_certificate (user_id);

        -- The purpose of each key that a phone has ever named. A row is never deleted: a key that has signed for one purpose would
        -- otherwise lend these signatures to another one.
        CREATE TABLE IF NOT EXISTS used_key (
            thumbprint binary(32) NOT NULL PRIMARY KEY,     -- SHA-256 of the SubjectPublicKeyInfo
            purpose varchar(48) NOT NULL,           -- enrolment, agreement, statement:TAG, raw:TAG
            device_id binary(16) NOT NULL           -- the phone that named it first
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        -- The last report of each phone about itself. Only the phone's software says so: a report is a hint and no proof. A column
        -- is null if the phone does not report it. The table is apart from `device`, so that reports and logins do not conflict.
        CREATE TABLE IF NOT EXISTS device_report (
            device_id binary(16) NOT NULL PRIMARY KEY,
            os varchar(32),                         -- the operating system, such as iOS
            os_version varchar(32),                 -- such as 26.1
            patch_level int,                        -- of Android: year and month of the security patches, such as 202610
            app_version varchar(32),
            model varchar(64),                      -- of the phone, in the words of its maker
            battery int,                            -- the charge in percent
            screen_lock int,                        -- 1: the phone has a screen lock; 0: it has none
            rooted int,                             -- 1: the app thinks that the phone is rooted; 0: it does not
            reported_at datetime(3) NOT NULL,       -- by the phone's clock; only a later report replaces the row
            received_at datetime(3) NOT NULL,       -- by the relay's clock: the age of the report
            mac binary(36)                          -- by the relay that wrote the row (see threat-model.md)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        -- The code factors of users. Only an active row is used; the first right code of a waiting row makes it active, in the
        -- place of the former one.
        CREATE TABLE IF NOT EXISTS factor (
            id binary(16) NOT NULL PRIMARY KEY,
            user_id binary(16) NOT NULL,
            kind varchar(16) NOT NULL,              -- totp, hotp, sms, mail, recovery, operator (a temporary code)
            state varchar(16) NOT NULL,             -- waiting, active
            secret blob,                            -- sealed: the secret of the codes; null for recovery codes
            sealed_by varchar(64),                  -- the id of the sealing key
            algorithm varchar(8) NOT NULL,          -- sha1, sha256, sha512
            digits int NOT NULL,
            period int,                             -- of totp: the time step in seconds
            counter bigint NOT NULL,                -- totp: the last accepted; hotp: the next expected; sms, mail: the next to send;
                                                    -- recovery: the position of the code to be typed back
            address varchar(512),                   -- of sms and mail: the recipient, or sealed
            failures int NOT NULL,                  -- wrong codes of this factor since its last right one
            failed_at datetime(3),
            last_code_at datetime(3),               -- a code of this factor was right then
            approval binary(16),                    -- the challenge by which the user approved it, or the recovery that it belongs to
            device_id binary(16),                   -- of totp: the only phone that gets the secret; null: the website got it
            resync_since datetime(3),               -- of hotp: the store was restored then, and the counter may be old; null: it is right
            announced_at datetime(3),               -- the user was told then that the phone got the secret
            created_at datetime(3) NOT NULL,
            confirmed_at datetime(3),
            operation binary(16) NOT NULL,
            mac binary(36),                         -- by the relay that wrote the row (see threat-model.md)
            UNIQUE (user_id, kind, state)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        CREATE INDEX IF NOT EXISTS factor_sealed ON factor (sealed_by);

        -- The codes that were sent, as counters. A code is computed from the factor's secret and the counter; it is not stored.
        CREATE TABLE IF NOT EXISTS sent_code (
            factor_id binary(16) NOT NULL,
            counter bigint NOT NULL,
            challenge_id binary(16),                -- null: sent to confirm the address
            sent_at datetime(3) NOT NULL,
            expires_at datetime(3) NOT NULL,
            mac binary(36),                         -- by the relay that wrote the row (see threat-model.md)
            PRIMARY KEY (factor_id, counter)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        CREATE INDEX IF NOT EXISTS sent_code_challenge ON sent_code (challenge_id);

        -- Recovery codes, as digests: nobody can log in with a row.
        CREATE TABLE IF NOT EXISTS recovery_code (
            user_id binary(16) NOT NULL,
            digest binary(32) NOT NULL,
            factor_id binary(16) NOT NULL,          -- the set to which it belongs: active, or waiting for one to be typed back
            position int NOT NULL,                  -- in its set, from 1
            used_at datetime(3),
            mac binary(36),                         -- by the relay that wrote the row (see threat-model.md)
            PRIMARY KEY (user_id, digest)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        -- The temporary codes that operators gave out, as digests under a key outside the store. A row is deleted when its code has
        -- expired, was replaced or revoked. Its row in the table factor, of the kind operator, is deleted with it.
        CREATE TABLE IF NOT EXISTS temporary_code (
            factor_id binary(16) NOT NULL PRIMARY KEY,
            user_id binary(16) NOT NULL,
            digest binary(32) NOT NULL,             -- HMAC of the user's id and the code, under the master key
            uses int NOT NULL,                      -- how often it may be used
            uses_left int NOT NULL,
            may_enrol int NOT NULL,                 -- 1: it may approve that a phone is bound
            created_at datetime(3) NOT NULL,
            expires_at datetime(3) NOT NULL,
            last_used_at datetime(3),
            operation binary(16) NOT NULL,          -- the operation that gave it out
            mac binary(36),                         -- by the program that wrote the row (see threat-model.md)
            UNIQUE (user_id)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        CREATE INDEX IF NOT EXISTS temporary_code_age ON temporary_code (expires_at);

        -- Recoveries: the ways back from a lost factor. Each mailed link has a row; the row of a link that continues an open
        -- recovery takes its place.
        CREATE TABLE IF NOT EXISTS recovery (
            id binary(16) NOT NULL PRIMARY KEY,
            user_id binary(16) NOT NULL,
            factor varchar(16) NOT NULL,            -- what was lost: totp, hotp, push (all phones)
            state varchar(16) NOT NULL,             -- sent, opened (the link was handed in), proved, done, cancelled
            link binary(32) NOT NULL,               -- SHA-256 of the token in the mailed link
            address varchar(512) NOT NULL,          -- the recipient of the link, or sealed
            handle binary(32),                      -- SHA-256 of the token that the website got for the link
            cancel binary(32),                      -- SHA-256 of the token in the announcements that cancels the recovery
            proof varchar(16),                      -- the second proof: phone, totp, hotp, sms, recovery, operator
            proved_at datetime(3),
            ready_at datetime(3),                   -- the change is possible from then on; null: before the first proof
            announced_at datetime(3),               -- the first announcement was accepted, or a phone approved; null: not ready
            challenge_id binary(16),                -- the newest request to the phones
            started_by varchar(16) NOT NULL,        -- website, operator
            stopped_by varchar(16),                 -- of a cancelled one: phone, website, operator, code (a mailed link), relay
            created_at datetime(3) NOT NULL,
            expires_at datetime(3) NOT NULL,
            operation binary(16) NOT NULL,
            mac binary(36),                         -- by the relay that wrote the row (see threat-model.md)
            UNIQUE (link),
            UNIQUE (handle)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        CREATE INDEX IF NOT EXISTS recovery_user ON recovery (user_id, created_at);
        CREATE INDEX IF NOT EXISTS recovery_cancel ON recovery (cancel);
        CREATE INDEX IF NOT EXISTS recovery_challenge ON recovery (challenge_id);
        CREATE INDEX IF NOT EXISTS recovery_age ON recovery (expires_at);

        -- Notices: short texts from the website or an operator, which the user's phones show. They decide nothing.
        CREATE TABLE IF NOT EXISTS notice (
            id binary(16) NOT NULL PRIMARY KEY,
            user_id binary(16) NOT NULL,
            author varchar(16) NOT NULL,            -- website, operator
            title varchar(64) NOT NULL,
            body varchar(1000) NOT NULL,            -- lines, separated by line feeds
            created_at datetime(3) NOT NULL,
            read_at datetime(3),                    -- a phone fetched it first then, and it is in the archive
            operation binary(16) NOT NULL,
            mac binary(36)                          -- by the relay that wrote the row (see threat-model.md)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        CREATE INDEX IF NOT EXISTS notice_user ON notice (user_id, read_at);
        CREATE INDEX IF NOT EXISTS notice_age ON notice (created_at);

        -- What each website uses: a row for each day (UTC) and each run of a relay, which alone writes it, and always as a whole.
        -- Text messages are in sms_usage.
        CREATE TABLE IF NOT EXISTS website_usage (
            day varchar(10) NOT NULL,               -- 2026-11-22
            website_id binary(16) NOT NULL,
            relay_id binary(16) NOT NULL,
            logins bigint NOT NULL,                 -- challenges that were opened
            pushes bigint NOT NULL,                 -- pushes that were begun, one for each phone
            mails bigint NOT NULL,                  -- mails that were begun; notices about accounts when a server took them
            users bigint,                           -- the users at the first use of that day; null: the relay did not count them
            PRIMARY KEY (day, website_id, relay_id)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        -- Text messages by day, hour or month (UTC) and by recipient or website, for limits and costs.
        CREATE TABLE IF NOT EXISTS sms_usage (
            period varchar(13) NOT NULL,            -- 2026-11-22, 2026-11-22 09, or 2026-11 (only of websites)
            scope varchar(40) NOT NULL,             -- '' (all), a number prefix (+49), the id of a user, or w and the id of a website
            messages int NOT NULL,                  -- begun; the limits count these, those of websites segments
            sent int NOT NULL,                      -- accepted by gateways; sent, segments and cost not for hours and users
            segments int NOT NULL,
            cost bigint NOT NULL,                   -- in millionths of the currency
            PRIMARY KEY (period, scope)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        -- The logins. A row is deleted when its login has been over for longer than retention.logins (see the settings).
        CREATE TABLE IF NOT EXISTS challenge (
            id binary(16) NOT NULL PRIMARY KEY,
            website_id binary(16) NOT NULL,
            user_id binary(16) NOT NULL,
            state varchar(16) NOT NULL,             -- asked, sent; final: answered, expired, cancelled, failed
            decision varchar(16),                   -- approve, deny, fraud
            reason varchar(16),
            policy text NOT NULL,                   -- JSON: all policies at the time of the request
            context blob NOT NULL,                  -- JSON: what the phone shows, byte for byte; or sealed
            nonce binary(16) NOT NULL,
            number varchar(6),
            factor varchar(16),                     -- the factor that decided, or the current one
            proof varchar(16),                      -- signed, certificate, website, code
            device_id binary(16),                   -- the phone that decided
            receipt text,                           -- the JWS that the phone signed, for the website to verify, or sealed
            uv varchar(16),                         -- how the phone verified its owner: none, passcode, biometric
            place_check varchar(16),                -- the phone's place against the login's: near, far, unknown; null: not compared
            place_distance int,                     -- between them at least, in kilometres
            attested text,                          -- JSON: verdict, facts and report of the phone that approved; null: not judged
            assertion text,                         -- over the receipt, for the website: of App Attest in base64url, or JSON (a page, perhaps with one of WebAuthn)
            approves binary(32),                    -- of an approval: the digest of the change that it approves
            used_by binary(16),                     -- of an approval: the operation that used it
            language varchar(256),                  -- of messages: a BCP 47 tag, or a whole Accept-Language
            trace varchar(55),                      -- the traceparent of the website's request, for the webhook about the end
            known int NOT NULL DEFAULT 0,           -- 1: from a browser that the website knows as the user's; -1: a reminder
            asked_at datetime(3) NOT NULL,
            expires_at datetime(3) NOT NULL,
            decided_at datetime(3),
            operation binary(16) NOT NULL,
            mac binary(36)                          -- by the relay that wrote the row (see threat-model.md)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        CREATE INDEX IF NOT EXISTS challenge_open ON challenge (decided_at, user_id);
        CREATE INDEX IF NOT EXISTS challenge_asked ON challenge (user_id, asked_at);
        -- Retention reads it, and the views of logins by hour read nothing else of these long rows.
        CREATE INDEX IF NOT EXISTS challenge_hour ON challenge (asked_at, website_id, state, decision, factor, decided_at);

        -- The factors that were tried for each challenge, in order.
        CREATE TABLE IF NOT EXISTS step (
            challenge_id binary(16) NOT NULL,
            ordinal int NOT NULL,
            factor varchar(16) NOT NULL,
            state varchar(16) NOT NULL,             -- queued, sent, seen; final: refused, undeliverable, expired, answered, skipped
            at datetime(3) NOT NULL,
            reason varchar(64),                     -- of a failure, mostly in the words of the delivery service
            PRIMARY KEY (challenge_id, ordinal)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        -- The outbox: work that is still to be done, written with the change that causes it. A relay leases a row before it acts.
        CREATE TABLE IF NOT EXISTS outbox (
            id binary(16) NOT NULL PRIMARY KEY,     -- of a push: the apns-id; of a webhook: the webhook-id
            kind varchar(16) NOT NULL,              -- push, mail, sms, webhook, next (the next factor begins), expiry, recovery (phones are asked)
            event varchar(32),                      -- of a webhook or mail: the event type; activation, recovery.link: what is mailed
            user_id binary(16),                     -- of a webhook or mail: the subject
            website_id binary(16),                  -- of a webhook: the recipient
            ordinal int,                            -- of a webhook: its order among those of one challenge
            webhook_due_at datetime(3),             -- of a webhook: the next attempt; null: dead
            challenge_id binary(16),
            device_id binary(16),
            factor_id binary(16),                   -- of a code: its factor
            counter bigint,                         -- of a code: its counter
            recovery_id binary(16),                 -- of a mail about a recovery: which one
            address varchar(512),                   -- of a mail or sms: the recipient, or sealed
            language varchar(256),
            created_at datetime(3),
            expires_at datetime(3),                 -- nothing is sent after that
            ambiguous_at datetime(3),               -- the first attempt that may have succeeded; one more follows at most
            dead_at datetime(3),                    -- a dead letter since then; `twoefay outbox replay` sends it again
            reason varchar(64),                     -- the result of the last attempt; forged: no relay wrote this row
            due_at datetime(3),                     -- null: dead, or a webhook
            attempts int NOT NULL,
            holder binary(16),                      -- the relay that acts on it now
            lease binary(16),                       -- the id of the lease by which it holds the row
            mac binary(36)                          -- by the relay that wrote the row (see threat-model.md)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        CREATE INDEX IF NOT EXISTS outbox_due ON outbox (due_at, dead_at, kind);
        CREATE INDEX IF NOT EXISTS outbox_webhook ON outbox (website_id, dead_at, webhook_due_at);
        CREATE INDEX IF NOT EXISTS outbox_challenge ON outbox (challenge_id);
        CREATE INDEX IF NOT EXISTS outbox_lease ON outbox (lease);
        CREATE INDEX IF NOT EXISTS outbox_user ON outbox (user_id);

        -- The running relays. Each increments its heartbeat; if it stands still, the relay is dead and others take its rows.
        CREATE TABLE IF NOT EXISTS relay (
            id binary(16) NOT NULL PRIMARY KEY,
            beat bigint NOT NULL,
            started_at datetime(3) NOT NULL
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        -- The syncs of each source of users: the newest one, and how the last ones ended.
        CREATE TABLE IF NOT EXISTS directory_sync (
            name varchar(32) NOT NULL PRIMARY KEY,  -- the source, as the settings name it
            run binary(16) NOT NULL,                -- the newest sync; an older one that still runs changes nothing more
            started_at datetime(3) NOT NULL,
            ended_at datetime(3),                   -- null: it runs, or its process has died
            error varchar(512),                     -- why it failed; null: it did not
            succeeded_at datetime(3),               -- the end of the last sync that did not fail; the counts are of that one
            users int NOT NULL,                     -- enabled users of the source
            added int NOT NULL,
            changed int NOT NULL,
            disabled int NOT NULL,
            conflicts int NOT NULL
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        -- Tasks that one relay does for all: retention, the deletion of old rows; the sync of each source of users; and personal,
        -- the sealing of personal values.
        CREATE TABLE IF NOT EXISTS task_lease (
            name varchar(64) NOT NULL PRIMARY KEY,  -- retention, personal, or directory and the name of the source
            holder binary(16)                       -- the relay that does it; null or dead: another takes it
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        -- The newest run that brings personal values into the form of the setting `seal`: how far it has come, or how it ended.
        CREATE TABLE IF NOT EXISTS personal_sealing (
            id int NOT NULL PRIMARY KEY,            -- 1
            seal varchar(16) NOT NULL,              -- the setting of the relay: secrets, personal
            key_id varchar(64) NOT NULL,            -- the id of the sealing key
            place varchar(16) NOT NULL,             -- the table that the run has come to
            mark varbinary(32) NOT NULL,            -- the key of the last row of it that was read
            checked bigint NOT NULL,                -- the rows that were read
            changed bigint NOT NULL,                -- the rows that were rewritten
            stuck bigint NOT NULL,                  -- the values that could not be opened, or are in rows that are not genuine
            started_at datetime(3) NOT NULL,
            ended_at datetime(3)                    -- null: the run goes on
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        -- Keys that the relays make, use and delete by themselves. Each is sealed with its kind, number and times.
        CREATE TABLE IF NOT EXISTS rolling_key (
            kind varchar(16) NOT NULL,              -- nonces
            number bigint NOT NULL,                 -- counts the keys of the kind
            sealed blob NOT NULL,
            sealed_by varchar(64) NOT NULL,         -- the id of the sealing key
            made_at datetime(3) NOT NULL,
            starts_at datetime(3) NOT NULL,         -- new values use it from then on; every relay has read it by then
            ends_at datetime(3) NOT NULL,           -- no value of it is accepted from then on
            PRIMARY KEY (kind, number)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        -- The answers to requests with an Idempotency-Key, for their repetitions.
        CREATE TABLE IF NOT EXISTS idempotency (
            website_id binary(16) NOT NULL,
            digest binary(32) NOT NULL,             -- SHA-256 of route and key
            fingerprint binary(32) NOT NULL,        -- a digest of the request, under a key outside the store
            state varchar(16) NOT NULL,             -- running, done, shown (it held a secret, and is not shown again)
            operation binary(16) NOT NULL,
            holder binary(16),                      -- the relay that runs it now
            status int,
            answer blob,                            -- sealed
            created_at datetime(3) NOT NULL,
            mac binary(36),                         -- by the relay that wrote the row (see threat-model.md)
            PRIMARY KEY (website_id, digest)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        CREATE INDEX IF NOT EXISTS idempotency_age ON idempotency (created_at);

        -- Random secrets of operations that may be repeated. Codes and keys in their answers are derived from the secret, so that a
        -- repetition shows the same ones. A row is deleted when its answer was shown, or at expires_at: a day after the request, or
        -- ten minutes after a phone was bound (its revocation code). A secret is sealed for its operation, verb, user and website.
        CREATE TABLE IF NOT EXISTS operation_secret (
            operation binary(16) NOT NULL PRIMARY KEY,      -- of a phone: the operation that used the activation code; of a mail: its outbox id
            sealed blob NOT NULL,
            sealed_by varchar(64) NOT NULL,         -- the id of the sealing key
            expires_at datetime(3) NOT NULL
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        CREATE INDEX IF NOT EXISTS operation_secret_age ON operation_secret (expires_at);

        -- Each change, once, for retention.audit. A committed script is recognized by its operation. Relays poll for ids above the
        -- highest one that they know, to answer held requests. In a cluster, ids have gaps and are not in order of time: order
        -- by `at`.
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
            actor varchar(128),                     -- who did it, such as `operator alice`, `website shop` or `phone 0f3a…`
            request varchar(64),                    -- the id of the request, as in the log
            detail binary(32),                      -- digest of the row's words in audit_detail, with their salt
            writer binary(16),                      -- who signed the row (audit_writer), and the number of the link
            link bigint,
            repeated tinyint,                       -- 1 if the operation came again; the chain does not cover it
            UNIQUE (operation)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        CREATE INDEX IF NOT EXISTS audit_age ON audit (at);
        CREATE INDEX IF NOT EXISTS audit_user ON audit (user_id, at);
        CREATE INDEX IF NOT EXISTS audit_challenge ON audit (challenge_id);

        -- Words of audit rows that tell who a person is, or that a person wrote. Deleted with their user; the row keeps a digest.
        CREATE TABLE IF NOT EXISTS audit_detail (
            operation binary(16) NOT NULL PRIMARY KEY,
            salt binary(16) NOT NULL,
            note varchar(512),                      -- an operator's words (why a row was adopted, how an identity was checked), or the new value, such as an expiry
            changes text,                           -- JSON: the values before and after
            reason varchar(512)                     -- the operator's reason (--reason)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        -- Who writes the audit: each start of a relay, and each run of twoefay that changed something. The private key exists in the
        -- memory of that process only. Retention deletes a writer after all of its links (docs/operators/audit.md).
        CREATE TABLE IF NOT EXISTS audit_writer (
            id binary(16) NOT NULL PRIMARY KEY,
            program varchar(16) NOT NULL,           -- relay, tool
            host varchar(255) NOT NULL,
            started_at datetime(3) NOT NULL,
            public_key varbinary(65) NOT NULL,      -- P-256, uncompressed
            mac binary(36)                          -- by the program that wrote the row (see threat-model.md)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        -- The chain of each writer: one link for each transaction that wrote audit rows, numbered without gaps.
        CREATE TABLE IF NOT EXISTS audit_link (
            writer binary(16) NOT NULL,
            sequence bigint NOT NULL,
            at datetime(3) NOT NULL,
            former binary(32) NOT NULL,             -- the hash of the link before
            entries /*M! mediumblob */ /*S! blob */ NOT NULL, -- 16 bytes of operation and 32 bytes of digest for each row
            hash binary(32) NOT NULL,
            signature binary(64) NOT NULL,          -- of writer, number, time and hash, by the writer's key
            PRIMARY KEY (writer, sequence)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        -- The last link of each chain that retention has deleted. The writer zero: the number of chains that were deleted with
        -- their writers.
        CREATE TABLE IF NOT EXISTS audit_checkpoint (
            writer binary(16) NOT NULL PRIMARY KEY,
            sequence bigint NOT NULL,
            hash binary(32) NOT NULL,
            at datetime(3) NOT NULL,                -- only links before this time were deleted
            mac binary(36)                          -- by the program that wrote the row (see threat-model.md)
        ) /*M! ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin */;

        -- For people: the users of all websites with their newest phone, under the column names of the original Twoefay.
        CREATE VIEW IF NOT EXISTS Users AS
        SELECT u.username, u.email, u.phone, lower(hex(u.token)) AS id_token,
            (SELECT d.push_token FROM device d WHERE d.user_id = u.id AND d.state = 'active'
             ORDER BY d.created_at DESC, d.id LIMIT 1) AS dev_token,
            w.name AS website, u.created_at
        FROM user u JOIN website w ON w.id = u.website_id;

        -- For people: the phones of all users, with their counts, the states of PIN and PUK, the verdict on the attestation (none:
        -- nothing was recorded) and the last report of each. A report is a hint and no proof.
        CREATE VIEW IF NOT EXISTS Phones AS
        SELECT w.name AS website, u.username, lower(hex(d.id)) AS device, d.name, d.platform, d.state, d.stopped_by,
            u.state AS user_state, u.expires_at, d.login_successes, d.login_failures, d.failures AS wrong_numbers, d.created_at,
            d.last_seen_at, (SELECT max(f.last_code_at) FROM factor f WHERE f.user_id = u.id) AS last_code_at,
            CASE WHEN d.pin_key IS NULL THEN 'none' WHEN d.pin_failures >= 3 THEN 'locked' ELSE 'set' END AS pin,
            CASE WHEN d.pin_key IS NULL THEN 'none' WHEN d.puk_failures >= 5 THEN 'locked' ELSE 'set' END AS puk,
            coalesce(a.verdict, 'none') AS attestation, coalesce(a.faults, '') AS attestation_faults, d.verify_since,
            r.os, r.os_version, r.patch_level, r.app_version, r.model, r.battery, r.screen_lock, r.rooted, r.reported_at,
            r.received_at
        FROM device d JOIN user u ON u.id = d.user_id JOIN website w ON w.id = u.website_id
        LEFT JOIN attestation a ON a.device_id = d.id LEFT JOIN device_report r ON r.device_id = d.id;

        -- For people: the phones of each website by state, with the answers of these phones.
        CREATE VIEW IF NOT EXISTS PhonesByState AS
        SELECT w.name AS website, d.state, d.platform, count(*) AS phones, sum(d.login_successes) AS login_successes,
            sum(d.login_failures) AS login_failures, max(d.last_seen_at) AS last_seen_at
        FROM device d JOIN user u ON u.id = d.user_id JOIN website w ON w.id = u.website_id
        GROUP BY w.name, d.state, d.platform;

        -- For people: the users of each website by state, and how many of them have an expiry.
        CREATE VIEW IF NOT EXISTS UsersByState AS
        SELECT w.name AS website, u.state, count(*) AS users, count(u.codes_locked_at) AS codes_locked,
            count(u.expires_at) AS with_expiry, min(u.expires_at) AS first_expiry
        FROM user u JOIN website w ON w.id = u.website_id
        GROUP BY w.name, u.state;

        -- For people: the logins of each website by hour, and their results.
        CREATE VIEW IF NOT EXISTS LoginsByHour AS
        SELECT w.name AS website, h.hour, h.logins, h.approved, h.denied, h.fraud, h.expired, h.other, h.open
        FROM (SELECT c.website_id, substr(min(c.asked_at), 1, 13) AS hour, count(*) AS logins,
            sum(CASE WHEN c.decision = 'approve' THEN 1 ELSE 0 END) AS approved,
            sum(CASE WHEN c.decision = 'deny' THEN 1 ELSE 0 END) AS denied,
            sum(CASE WHEN c.decision = 'fraud' THEN 1 ELSE 0 END) AS fraud,
            sum(CASE WHEN c.state = 'expired' THEN 1 ELSE 0 END) AS expired,
            sum(CASE WHEN c.state IN ('cancelled', 'failed') THEN 1 ELSE 0 END) AS other,
            sum(CASE WHEN c.decided_at IS NULL THEN 1 ELSE 0 END) AS open
            FROM challenge c GROUP BY /*M! c.asked_at DIV 10000 */ /*S! substr(c.asked_at, 1, 13) */, c.website_id) h
        JOIN website w ON w.id = h.website_id;

        -- For people: how long the answers of each hour took, from the request, by the factor that answered.
        CREATE VIEW IF NOT EXISTS AnswerTimes AS
        SELECT w.name AS website, h.hour, h.factor, h.answers, h.average_seconds, h.longest_seconds
        FROM (SELECT c.website_id, substr(min(c.asked_at), 1, 13) AS hour, c.factor, count(*) AS answers,
            /*M! round(avg(timestampdiff(MICROSECOND, c.asked_at, c.decided_at)) / 1000000, 3) */
            /*S! round(avg(julianday(c.decided_at) - julianday(c.asked_at)) * 86400, 3) */ AS average_seconds,
            /*M! round(max(timestampdiff(MICROSECOND, c.asked_at, c.decided_at)) / 1000000, 3) */
            /*S! round(max(julianday(c.decided_at) - julianday(c.asked_at)) * 86400, 3) */ AS longest_seconds
            FROM challenge c WHERE c.decision IS NOT NULL
            GROUP BY /*M! c.asked_at DIV 10000 */ /*S! substr(c.asked_at, 1, 13) */, c.website_id, c.factor) h
        JOIN website w ON w.id = h.website_id;

        -- For people: each login with the names of its website and user. Restrict asked_at, or name the user.
        CREATE VIEW IF NOT EXISTS Logins AS
        SELECT lower(hex(c.id)) AS challenge, w.name AS website, u.username, c.asked_at, c.decided_at, c.expires_at, c.state,
            c.decision, c.reason, c.factor, c.proof, c.uv, lower(hex(c.device_id)) AS device, c.place_check, c.place_distance,
            /*M! round(timestampdiff(MICROSECOND, c.asked_at, c.decided_at) / 1000000, 3) */
            /*S! round((julianday(c.decided_at) - julianday(c.asked_at)) * 86400, 3) */ AS seconds
        FROM challenge c JOIN website w ON w.id = c.website_id JOIN user u ON u.id = c.user_id;

        -- For people: the open logins.
        CREATE VIEW IF NOT EXISTS OpenChallenges AS
        SELECT lower(hex(c.id)) AS challenge, w.name AS website, u.username, c.state, c.factor, c.asked_at, c.expires_at
        FROM challenge c JOIN website w ON w.id = c.website_id JOIN user u ON u.id = c.user_id
        WHERE c.decided_at IS NULL;

        -- For people: the phones of each website by the relay's verdict on their attestation; none: nothing was recorded.
        CREATE VIEW IF NOT EXISTS AttestedPhones AS
        SELECT w.name AS website, d.platform, coalesce(a.verdict, 'none') AS verdict, coalesce(a.faults, '') AS faults,
            count(*) AS phones
        FROM device d JOIN user u ON u.id = d.user_id JOIN website w ON w.id = u.website_id
        LEFT JOIN attestation a ON a.device_id = d.id WHERE d.state = 'active'
        GROUP BY w.name, d.platform, coalesce(a.verdict, 'none'), coalesce(a.faults, '');

        -- For people: the users who cannot log in, or not by code, and since when.
        CREATE VIEW IF NOT EXISTS LockedUsers AS
        SELECT w.name AS website, u.username, u.state, u.stopped_by,
            (SELECT max(a.at) FROM audit a WHERE a.user_id = u.id
             AND a.event IN ('user.locked', 'user.frozen', 'user.taken', 'user.disabled')) AS since,
            u.codes_locked_at, u.code_failures
        FROM user u JOIN website w ON w.id = u.website_id
        WHERE u.state <> 'active' OR u.codes_locked_at IS NOT NULL;

        -- For people: the active phones by the month in which they were bound, and the month in which they were last seen.
        CREATE VIEW IF NOT EXISTS PhonesByAge AS
        SELECT w.name AS website, d.platform, substr(d.created_at, 1, 7) AS bound_in, substr(d.last_seen_at, 1, 7) AS seen_in,
            count(*) AS phones
        FROM device d JOIN user u ON u.id = d.user_id JOIN website w ON w.id = u.website_id WHERE d.state = 'active'
        GROUP BY w.name, d.platform, substr(d.created_at, 1, 7), substr(d.last_seen_at, 1, 7);

        -- For people: how many users of each website have each factor; none: neither a phone nor a code.
        CREATE VIEW IF NOT EXISTS FactorMix AS
        SELECT w.name AS website, h.factor, count(*) AS users
        FROM (SELECT u.website_id, 'phone' AS factor FROM user u
            WHERE EXISTS (SELECT 1 FROM device d WHERE d.user_id = u.id AND d.state = 'active')
            UNION ALL SELECT u.website_id, f.kind FROM factor f JOIN user u ON u.id = f.user_id WHERE f.state = 'active'
            UNION ALL SELECT u.website_id, 'none' FROM user u
            WHERE NOT EXISTS (SELECT 1 FROM device d WHERE d.user_id = u.id AND d.state = 'active')
            AND NOT EXISTS (SELECT 1 FROM factor f WHERE f.user_id = u.id AND f.state = 'active')) h
        JOIN website w ON w.id = h.website_id
        GROUP BY w.name, h.factor;

        -- For people: the steps of logins that reached nobody, with the reason. Restrict asked_at.
        CREATE VIEW IF NOT EXISTS DeliveryFailures AS
        SELECT c.asked_at, w.name AS website, u.username, lower(hex(c.id)) AS challenge, s.factor, s.state, s.reason, s.at
        FROM challenge c JOIN step s ON s.challenge_id = c.id JOIN website w ON w.id = c.website_id
        JOIN user u ON u.id = c.user_id
        WHERE s.state IN ('refused', 'undeliverable');

        -- For people: what each website used in each month. The most users of a day count. The cost of text messages is in
        -- millionths of the currency of the settings.
        CREATE VIEW IF NOT EXISTS WebsiteUsage AS
        SELECT w.name AS website, h.month, h.logins, h.pushes, h.mails, coalesce(t.messages, 0) AS texts,
            coalesce(t.segments, 0) AS segments, coalesce(t.cost, 0) AS text_cost, h.users
        FROM (SELECT u.website_id, substr(u.day, 1, 7) AS month, sum(u.logins) AS logins, sum(u.pushes) AS pushes,
            sum(u.mails) AS mails, max(u.users) AS users FROM website_usage u GROUP BY u.website_id, substr(u.day, 1, 7)) h
        JOIN website w ON w.id = h.website_id
        LEFT JOIN sms_usage t ON t.period = h.month
            AND t.scope = /*M! concat('w', lower(hex(h.website_id))) */ /*S! 'w' || lower(hex(h.website_id)) */;

        -- For people: what the relays still have to do, by kind, and what they gave up.
        CREATE VIEW IF NOT EXISTS Backlog AS
        SELECT o.kind, o.event, sum(CASE WHEN o.dead_at IS NULL THEN 1 ELSE 0 END) AS waiting,
            sum(CASE WHEN o.dead_at IS NULL AND o.attempts > 0 THEN 1 ELSE 0 END) AS failed_before,
            sum(CASE WHEN o.dead_at IS NULL THEN 0 ELSE 1 END) AS dead, min(o.created_at) AS oldest
        FROM outbox o GROUP BY o.kind, o.event;

        -- For people: the audit with names and readable ids. The ids in binary are quick to search by.
        CREATE VIEW IF NOT EXISTS AuditTrail AS
        SELECT a.at, a.id, a.event, w.name AS website, lower(hex(a.user_id)) AS user,
            lower(hex(a.challenge_id)) AS challenge, lower(hex(a.device_id)) AS device, a.outcome, a.proof, d.note, u.username,
            a.actor, a.request, d.changes, d.reason, a.user_id, a.challenge_id, a.device_id
        FROM audit a LEFT JOIN audit_detail d ON d.operation = a.operation LEFT JOIN website w ON w.id = a.website_id LEFT JOIN user u ON u.id = a.user_id;
        """#
}
