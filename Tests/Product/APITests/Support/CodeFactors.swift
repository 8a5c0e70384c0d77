import Crypto
import Domain
import Relay
import TestSupport

extension Site {
    /// Adds an active code factor, as if it had been enrolled.
    @discardableResult func give(
        _ kind: Factor, to username: String, at website: String, address: String? = nil
    ) async throws -> CodeFactor {
        let row = try await rig.relay.on { relay in
            try await relay.website(named: website, key: SHA256.hash(Array(website.utf8)))
        }
        guard let user = UserID(try rig.relay.text("SELECT lower(hex(id)) FROM user WHERE username = '\(username)'"))
        else { throw RigFailure("\(username) has no id") }
        return try rig.relay.addFactor(kind, of: user, at: row, address: address, period: kind == .totp ? 30 : nil)
    }
}
