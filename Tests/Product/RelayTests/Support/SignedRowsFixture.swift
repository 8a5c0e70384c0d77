import Bytes
import Domain
import Log
import Storage
import TestSupport
import World

@testable import Relay

/// A store with a row in every signed table, all of them genuine.
struct SignedRowsFixture {
    /// A column, and a value that an attacker might write there.
    struct Column {
        let name: String
        let change: String

        init(_ name: String, _ value: String) {
            self.name = name
            change = "\(name) = \(value)"
        }
    }

    private static let id = "x'" + String(repeating: "77", count: 16) + "'"
    private static let digest = "x'" + String(repeating: "77", count: 32) + "'"
    private static let moment = "'2099-01-01 00:00:00.000'"

    static let columns: [String: [Column]] = [
        "website": [
            Column("id", id), Column("name", "'bank.example'"), Column("display_name", "'Bank'"),
            Column("policy", "'{\"number\":\"none\"}'"), Column("webhook_url", "'https://stranger.example/'"),
        ],
        "website_key": [Column("thumbprint", digest), Column("website_id", id), Column("ends_at", moment)],
        "user": [
            Column("id", id), Column("token", id), Column("website_id", id), Column("username", "'stranger'"),
            Column("email", "'stranger@example.com'"), Column("phone", "'+4366099999'"),
            Column("display_name", "'Stranger'"), Column("proved_at", "NULL"), Column("challenge_id", id),
            Column("identity_confirmed_at", moment), Column("expires_at", moment), Column("expires_by", "'website'"),
            Column("prior_state", "'locked'"), Column("directory", "'stranger'"), Column("directory_id", "'stranger'"),
            Column("policy", "'{\"number\":\"0\"}'"), Column("former_email", "'stranger@example.com'"),
            Column("email_changed_at", moment),
        ],
        "activation": [
            Column("digest", digest), Column("user_id", id), Column("expires_at", moment),
            Column("approval", "'operator'"), Column("recovery_id", id), Column("address", "'other@example.com'"),
            Column("used_at", "NULL"),
        ],
        "device": [
            Column("id", id), Column("user_id", id), Column("platform", "'other'"), Column("environment", "'sandbox'"),
            Column("push_token", "'stranger'"), Column("public_key", "x'04'"), Column("thumbprint", digest),
            Column("revocation", digest), Column("binding", "'other'"), Column("approval", id),
            Column("pin_key", "x'04'"), Column("puk_key", "x'04'"), Column("pin_version", "7"),
            Column("agreement_key", "x'04'"), Column("secret_asked_at", moment),
            Column("unlock_operation", id), Column("unlock_counter", "7"), Column("unlock_until", moment),
        ],
        "attestation": [
            Column("device_id", id), Column("user_id", id), Column("verdict", "'flawed'"), Column("faults", "'root'"),
            Column("facts", "'{}'"), Column("statement", "'{}'"), Column("activation_code", "'other'"),
            Column("app_key", "x'04'"), Column("counter", "7"), Column("judged_at", moment), Column("operation", id),
        ],
        "web_phone": [
            Column("device_id", id), Column("user_id", id), Column("app", "'https://other.example'"),
            Column("rp", "'other.example'"), Column("credential", "'other'"), Column("public_key", "x'04'"),
            Column("is_apart", "1"), Column("operation", id),
        ],
        "device_report": [
            Column("device_id", id), Column("os", "'other'"), Column("os_version", "'99'"),
            Column("patch_level", "209901"), Column("app_version", "'99'"), Column("model", "'other'"),
            Column("battery", "99"), Column("screen_lock", "1"), Column("rooted", "0"),
            Column("reported_at", moment), Column("received_at", moment),
        ],
        "tagged_certificate": [
            Column("device_id", id), Column("tag", "'other'"), Column("user_id", id), Column("is_raw", "1"),
            Column("serial", "'00'"), Column("thumbprint", digest), Column("certificate", "'other'"),
            Column("asked_at", moment), Column("created_at", moment), Column("expires_at", moment),
        ],
        "factor": [
            Column("id", id), Column("user_id", id), Column("kind", "'hotp'"), Column("secret", "x'00'"),
            Column("sealed_by", "'2'"), Column("algorithm", "'sha512'"), Column("digits", "1"),
            Column("period", "86400"), Column("counter", "-1"), Column("address", "'+4366099999'"),
            Column("approval", id), Column("confirmed_at", moment), Column("device_id", id),
        ],
        "sent_code": [
            Column("factor_id", id), Column("counter", "99"), Column("challenge_id", id), Column("expires_at", moment),
        ],
        "recovery_code": [
            Column("user_id", id), Column("digest", digest), Column("factor_id", id), Column("position", "9"),
        ],
        "temporary_code": [
            Column("factor_id", id), Column("user_id", id), Column("digest", digest), Column("uses", "9"),
            Column("uses_left", "9"), Column("may_enrol", "1 - may_enrol"), Column("expires_at", moment),
        ],
        "challenge": [
            Column("id", id), Column("website_id", id), Column("user_id", id), Column("policy", "'{}'"),
            Column("context", "x'7b7d'"), Column("nonce", id), Column("number", "'999999'"), Column("approves", digest),
            Column("known", "1 - known"), Column("expires_at", moment), Column("factor", "'totp'"),
            Column("proof", "'code'"), Column("device_id", id), Column("receipt", "'other'"),
            Column("uv", "'biometric'"), Column("place_check", "'near'"), Column("place_distance", "1"),
            Column("attested", "'{}'"), Column("assertion", "'other'"), Column("used_by", id),
            Column("decided_at", moment), Column("operation", id),
        ],
        "idempotency": [
            Column("website_id", id), Column("digest", digest), Column("fingerprint", digest), Column("operation", id),
            Column("created_at", moment),
        ],
        "notice": [
            Column("id", id), Column("user_id", id), Column("author", "'operator'"), Column("title", "'Stranger'"),
            Column("body", "'Approve it.'"), Column("created_at", moment),
        ],
        "recovery": [
            Column("id", id), Column("user_id", id), Column("factor", "'hotp'"), Column("link", digest),
            Column("address", "'stranger@example.com'"), Column("handle", digest), Column("cancel", digest),
            Column("proof", "'operator'"), Column("ready_at", moment), Column("announced_at", moment),
            Column("challenge_id", id), Column("expires_at", moment), Column("state", "'proved'"),
        ],
        "audit_writer": [
            Column("id", id), Column("program", "'other'"), Column("host", "'stranger'"), Column("started_at", moment),
            Column("public_key", "x'04'"),
        ],
        "audit_checkpoint": [
            Column("writer", id), Column("sequence", "9"), Column("hash", digest), Column("at", moment),
        ],
        "installation_epoch": [
            Column("epoch", id), Column("source", digest), Column("began_at", moment),
        ],
        "outbox": [
            Column("id", id), Column("kind", "'mail'"), Column("event", "'user.unlocked'"), Column("user_id", id),
            Column("website_id", id), Column("challenge_id", id), Column("device_id", id), Column("factor_id", id),
            Column("counter", "99"), Column("recovery_id", id), Column("address", "'stranger@example.com'"),
        ],
    ]

    /// Columns that cannot help to obtain an approval, and rights, which only a relay or the tool
    /// can restore.
    static let harmless: [String: [String]] = [
        "website": ["state", "created_at", "operation", "mac"],
        "website_key": ["created_at", "not_before", "not_after", "issuer", "serial", "used_at", "mac"],
        "user": [
            "language", "state", "stopped_by", "code_failures", "code_failures_kept", "code_failed_at",
            "codes_locked_at", "identity_by", "identity_document", "created_at", "operation", "mac",
        ],
        "activation": ["created_at", "operation", "mac"],
        "device": [
            "state", "stopped_by", "name", "push_token_at", "failures", "failed_at", "pin_failures", "puk_failures",
            "unlock_failures", "login_successes", "login_failures", "created_at", "last_seen_at", "pin_sequence",
            "verify_since", "operation", "mac",
        ],
        "attestation": ["mac"],
        "web_phone": ["mac"],
        "device_report": ["mac"],
        "tagged_certificate": ["mac"],
        "factor": [
            "state", "failures", "failed_at", "last_code_at", "announced_at", "resync_since", "created_at", "operation",
            "mac",
        ],
        "sent_code": ["sent_at", "mac"],
        "recovery_code": ["used_at", "mac"],
        "temporary_code": ["created_at", "last_used_at", "operation", "mac"],
        "challenge": ["state", "decision", "reason", "language", "trace", "asked_at", "mac"],
        "idempotency": ["state", "holder", "status", "answer", "mac"],
        "notice": ["read_at", "operation", "mac"],
        "recovery": ["proved_at", "started_by", "stopped_by", "created_at", "operation", "mac"],
        "audit_writer": ["mac"],
        "audit_checkpoint": ["mac"],
        "installation_epoch": ["state", "mac"],
        "outbox": [
            "ordinal", "webhook_due_at", "language", "created_at", "expires_at", "ambiguous_at", "dead_at", "reason",
            "due_at",
            "attempts", "holder", "lease", "mac",
        ],
    ]

    let rig: RelayRig

    /// Makes one row in each table, because a change of ids would give two rows the same id.
    init(_ kind: StoreKind) async throws {
        rig = try await RelayRig(kind)
        let shop = try await rig.shop()
        let ada = try await Person.registered("ada", at: shop, rig, email: "ada@example.com")
        let phone = try await ada.bound(try TestPhone(pushToken: "push"), ada.code)
        let asked = try await ada.login()
        try await ada.decide(asked.challenge, .approve, asked.number, by: phone)
        await rig.settled()
        try rig.addFactor(.sms, of: phone.user, at: shop, address: "+4366012345678")
        let now = rig.time.now().sql
        try rig.execute(
            """
            INSERT INTO recovery_code (user_id, digest, factor_id, position)
            SELECT id, \(Self.digest.dropLast(3))88', id, 1 FROM user
            """)
        try rig.execute(
            """
            INSERT INTO device_report (device_id, screen_lock, rooted, reported_at, received_at)
            SELECT id, 0, 1, '\(now)', '\(now)' FROM device
            """)
        try rig.execute(
            """
            INSERT INTO tagged_certificate
            (device_id, tag, user_id, is_raw, serial, thumbprint, certificate, asked_at, created_at, expires_at)
            SELECT id, 'sign', user_id, 0, '4f', \(Self.digest.dropLast(3))88', 'certificate', '\(now)', '\(now)', '\(now)'
            FROM device
            """)
        try rig.execute("DELETE FROM factor WHERE kind <> 'sms'")
        try rig.execute(
            "INSERT INTO sent_code (factor_id, counter, sent_at, expires_at) SELECT id, 0, '\(now)', '\(now)' FROM factor"
        )
        try rig.execute(
            """
            INSERT INTO temporary_code
            (factor_id, user_id, digest, uses, uses_left, may_enrol, created_at, expires_at, operation)
            SELECT id, user_id, \(Self.digest.dropLast(3))88', 1, 1, 0, '\(now)', '\(now)', id FROM factor
            """)
        try rig.execute(
            """
            INSERT INTO idempotency (website_id, digest, fingerprint, state, operation, created_at)
            SELECT website_id, \(Self.digest.dropLast(3))88', \(Self.digest.dropLast(3))88', 'running', id, created_at FROM user
            """)
        try rig.execute(
            """
            INSERT INTO attestation (device_id, user_id, verdict, faults, activation_code, counter, judged_at, operation)
            SELECT id, id, 'valid', '', 'code', 0, created_at, id FROM user
            """)
        try rig.execute(
            """
            INSERT INTO web_phone (device_id, user_id, app, is_apart, operation)
            SELECT id, id, 'https://phone.example', 0, id FROM user
            """
        )
        try rig.execute(
            """
            INSERT INTO notice (id, user_id, author, title, body, created_at, operation)
            SELECT id, id, 'website', 'Title', 'Text', created_at, id FROM user
            """)
        try rig.execute(
            """
            INSERT INTO recovery (id, user_id, factor, state, link, address, started_by, created_at, expires_at, operation)
            SELECT id, id, 'totp', 'opened', \(Self.digest.dropLast(3))88', 'ada@example.com', 'website', created_at,
            '\(now)', id FROM user
            """)
        try rig.execute(
            """
            INSERT INTO audit_checkpoint (writer, sequence, hash, at)
            SELECT id, 0, \(Self.digest.dropLast(3))88', '\(now)' FROM audit_writer
            """)
        try rig.execute(
            """
            INSERT INTO installation_epoch (epoch, state, source, began_at)
            SELECT id, 'ready', \(Self.digest.dropLast(3))88', '\(now)' FROM user
            """)
        try rig.execute("DELETE FROM outbox")
        try rig.execute(
            "INSERT INTO outbox (id, kind, attempts, user_id) SELECT id, 'sms', 0, id FROM user")
    }
}

extension RelayRig {
    /// Returns the rows that are not genuine, by table and key.
    func notGenuine() async throws -> [String] {
        let (store, authenticator) = (store, try Self.rowAuthenticator())
        return try await on { _ in
            var found: [String] = []
            for table in SignedTable.all {
                for row in try await store.run(RowQueries.page(of: table, after: nil, with: authenticator))
                where row.verdict != .genuine { found.append("\(table.name) \(row.keyText)") }
            }
            return found
        }
    }

    /// The rows that caused a refusal so far, as the log names them.
    var forgeries: [String] {
        sink.lines.filter { $0.contains("event=row.forged") }.compactMap { line in
            line.split(separator: "row=\"").dropFirst().first.map { String($0.prefix { $0 != "\"" }) }
        }
    }
}
