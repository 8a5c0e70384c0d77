import Daemon
import JSON
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
