import Daemon
import JSON
import Relay
import Storage
import World

/// The certificates of a phone, for `device show`.
extension DeviceCertificates.Certificate {
    static let headings = ["SERIAL", "STATE", "ISSUED", "EXPIRES"]

    var row: [String] { [serial, state, createdAt.rfc3339, expiresAt.rfc3339] }

    private var state: String {
        guard let revokedAt else { return "valid" }
        return "\(isOnHold ? "on hold" : "revoked") since \(revokedAt.rfc3339)"
    }

    var json: JSONValue {
        var object: JSONObject = [
            "serial": .string(serial), "created_at": .string(createdAt.rfc3339),
            "expires_at": .string(expiresAt.rfc3339),
        ]
        if let revokedAt {
            object.set("revoked_at", .string(revokedAt.rfc3339))
            object.set("on_hold", .bool(isOnHold))
        }
        return .object(object)
    }
}

/// The further certificates of a phone, for `device show`.
extension TaggedCertificate {
    /// The table, after an empty line; empty if the phone has none.
    static func text(_ certificates: [TaggedCertificate]) -> String {
        guard !certificates.isEmpty else { return "" }
        let rows = certificates.map {
            [$0.tag, $0.isRaw ? "bare hashes" : "statements", $0.serial, $0.expiresAt.rfc3339]
        }
        return "\n\n\(Table(["TAG", "SIGNS", "SERIAL", "EXPIRES"], rows).text)"
    }

    var operatorJSON: JSONValue {
        .object([
            "tag": .string(tag), "raw": .bool(isRaw), "serial": .string(serial),
            "created_at": .string(createdAt.rfc3339), "expires_at": .string(expiresAt.rfc3339),
        ])
    }
}
