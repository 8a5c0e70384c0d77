import Domain

/// A table whose rows have a MAC, with the columns that the MAC covers.
public struct SignedTable: Sendable {
    public let name: String
    /// The columns of the primary key.
    public let key: [String]
    /// All other columns, or expressions of columns, that can help to an approval.
    let granting: [String]
    /// The rights of a row, as SQL conditions. Without a key a row can only lose them: when
    /// somebody locks, suspends, disables, ends or uses it.
    let rights: [String]
    /// The first schema that has the table.
    let since: Int64
    /// The statement that writes the MAC of a row. Its parameters are `:mac` and the list `key`.
    let sign: Statement

    init(_ name: String, key: [String], granting: [String], rights: [String] = [], since: Int64 = 0) {
        self.name = name
        self.key = key
        self.granting = granting
        self.rights = rights
        self.since = since
        sign = Statement("UPDATE \(name) SET mac = :mac WHERE \(Self.hasKey(key))")
    }

    var covered: [String] { key + granting }

    /// All combinations of rights that a row can have.
    var allRights: Range<Int64> { 0..<(1 << Int64(rights.count)) }

    /// The SQL expression of the rights that a row has, as bits.
    var rightsAsBits: String {
        let bits = rights.enumerated().map { index, right in "CASE WHEN \(right) THEN \(1 << index) ELSE 0 END" }
        return bits.isEmpty ? "0" : bits.joined(separator: " + ")
    }

    /// The SQL expression of the user whom a row is about, so that words about the row are deleted with
    /// the user.
    var user: String {
        if name == "user" { return "id" }
        if granting.contains("user_id") || key.contains("user_id") { return "user_id" }
        return switch name {
        case "device_report": "(SELECT d.user_id FROM device d WHERE d.id = device_report.device_id)"
        case "sent_code": "(SELECT f.user_id FROM factor f WHERE f.id = sent_code.factor_id)"
        default: "NULL"
        }
    }

    /// The columns that a check reads: the covered columns, the rights as bits, and the MAC.
    var columns: String { (covered + ["\(rightsAsBits) AS rights", "mac"]).joined(separator: ", ") }

    /// The SQL condition for the row with a given key, the list `key`.
    var hasKey: String { Self.hasKey(key) }

    private static func hasKey(_ key: [String]) -> String {
        key.enumerated().map { "\($1) = :key\($0 + 1)" }.joined(separator: " AND ")
    }

    /// The SQL condition for the row whose covered values equal given ones, the list `seen`, and
    /// whose rights equal `:rights`.
    var isAsSeen: String {
        let same = covered.enumerated().map { index, column in
            let equals = index < key.count ? "=" : "/*M! <=> */ /*S! IS */"
            return "\(column) \(equals) :seen\(index + 1)"
        }
        return (same + ["\(rightsAsBits) = :rights"]).joined(separator: " AND ")
    }
}

extension SignedTable {
    public static let all = [
        website, websiteKey, user, activation, device, attestation, webPhone, factor, sentCode, recoveryCode, challenge,
        outbox, temporaryCode,
        idempotency, notice, recovery, deviceReport, taggedCertificate, auditWriter, auditCheckpoint,
        installationEpoch,
    ]

    static let website = SignedTable(
        "website", key: ["id"], granting: ["name", "display_name", "policy", "webhook_url"],
        rights: ["state = 'active'"])

    static let websiteKey = SignedTable("website_key", key: ["thumbprint"], granting: ["website_id", "ends_at"])

    static let user = SignedTable(
        "user", key: ["id"],
        granting: [
            "token", "website_id", "username", "email", "phone", "display_name", "challenge_id", "prior_state",
            "directory", "directory_id", "policy", "identity_confirmed_at", "former_email", "email_changed_at",
            "expires_at", "expires_by",
        ],
        rights: [
            "state = 'active'", "state <> 'frozen'", "state <> 'disabled'", byOthers, "codes_locked_at IS NULL",
            "proved_at IS NULL",
        ])

    static let activation = SignedTable(
        "activation", key: ["digest"], granting: ["user_id", "expires_at", "approval", "recovery_id", "address"],
        rights: ["used_at IS NULL"])

    static let device = SignedTable(
        "device", key: ["id"],
        granting: [
            "user_id", "platform", "environment", "push_token", "public_key", "thumbprint", "revocation", "binding",
            "approval", "pin_key", "puk_key", "pin_version", "agreement_key", "secret_asked_at",
            "unlock_operation", "unlock_counter", "unlock_until",
        ],
        rights: [
            "state = 'active'", "state IN ('active', 'waiting')", "state <> 'revoked'", byOthers,
            "pin_failures < \(PhonePIN.tries)", "puk_failures < \(PhonePIN.pukTries)",
            "unlock_failures < \(UnlockCode.tries)", "verify_since IS NULL",
        ])

    static let attestation = SignedTable(
        "attestation", key: ["device_id"],
        granting: [
            "user_id", "verdict", "faults", "facts", "statement", "activation_code", "app_key", "counter", "judged_at",
            "operation",
        ])

    /// The table is signed because the assertions of its credentials are the proof that a page has
    /// verified its user. A missing row gives no right.
    static let webPhone = SignedTable(
        "web_phone", key: ["device_id"],
        granting: ["user_id", "app", "rp", "credential", "public_key", "is_apart", "operation"], since: 3)

    /// The table is signed because a policy can refuse phones by their reports.
    static let deviceReport = SignedTable(
        "device_report", key: ["device_id"],
        granting: [
            "os", "os_version", "patch_level", "app_version", "model", "battery", "screen_lock", "rooted",
            "reported_at", "received_at",
        ])

    /// The table is signed because a website relies on what the keys have signed.
    static let taggedCertificate = SignedTable(
        "tagged_certificate", key: ["device_id", "tag"],
        granting: ["user_id", "is_raw", "serial", "thumbprint", "certificate", "asked_at", "created_at", "expires_at"])

    static let factor = SignedTable(
        "factor", key: ["id"],
        granting: [
            "user_id", "kind", "secret", "sealed_by", "algorithm", "digits", "period", "counter", "address", "approval",
            "confirmed_at", "device_id",
        ], rights: ["state = 'active'", "resync_since IS NULL"])

    static let sentCode = SignedTable(
        "sent_code", key: ["factor_id", "counter"], granting: ["challenge_id", "expires_at"])

    static let recoveryCode = SignedTable(
        "recovery_code", key: ["user_id", "digest"], granting: ["factor_id", "position"], rights: ["used_at IS NULL"])

    static let temporaryCode = SignedTable(
        "temporary_code", key: ["factor_id"],
        granting: ["user_id", "digest", "uses", "uses_left", "may_enrol", "expires_at"])

    static let challenge = SignedTable(
        "challenge", key: ["id"],
        granting: [
            "website_id", "user_id", "policy", "context", "nonce", "number", "approves", "used_by", "known",
            "expires_at",
        ]
            + [
                "factor", "proof", "device_id", "receipt", "uv", "place_check", "place_distance", "attested",
                "assertion", "decided_at", "operation",
            ].map {
                "CASE WHEN decision = 'approve' THEN \($0) END"
            },
        rights: ["decided_at IS NULL", "decision = 'approve'"])

    /// The table is signed because a phone shows a notice as the words of the website or the
    /// operator.
    static let notice = SignedTable(
        "notice", key: ["id"], granting: ["user_id", "author", "title", "body", "created_at"])

    /// A recovery leads to a new factor. Without a key it can only be cancelled or called done.
    static let recovery = SignedTable(
        "recovery", key: ["id"],
        granting: [
            "user_id", "factor", "link", "address", "handle", "cancel", "proof", "ready_at", "announced_at",
            "challenge_id", "expires_at",
        ], rights: ["state = 'sent'", "state IN ('opened', 'proved')", "state = 'proved'"])

    /// The table is signed because a row names the operation that a repeated request continues.
    /// With the id of another operation, the request would get the answer of that operation.
    static let idempotency = SignedTable(
        "idempotency", key: ["website_id", "digest"], granting: ["fingerprint", "operation", "created_at"])

    /// The right that the row was not stopped by an operator, so that others may reactivate it.
    private static let byOthers = "coalesce(stopped_by, '') <> 'operator'"

    /// The table is signed because its keys sign the audit.
    static let auditWriter = SignedTable(
        "audit_writer", key: ["id"], granting: ["program", "host", "started_at", "public_key"])

    /// The table is signed because a chain of the audit may begin only at its checkpoint.
    static let auditCheckpoint = SignedTable(
        "audit_checkpoint", key: ["writer"], granting: ["sequence", "hash", "at"])

    /// The table is signed because relays refuse what belongs to another epoch. Without a key a
    /// restore cannot be called complete.
    static let installationEpoch = SignedTable(
        "installation_epoch", key: ["epoch"], granting: ["source", "began_at"], rights: ["state = 'ready'"])

    static let outbox = SignedTable(
        "outbox", key: ["id"],
        granting: [
            "kind", "event", "user_id", "website_id", "challenge_id", "device_id", "factor_id", "counter",
            "recovery_id", "address",
        ])
}
