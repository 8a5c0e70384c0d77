import Bytes
import Domain
import Relay
import TestSupport

/// The website's changes of its user's addresses.
extension Person {
    func change(
        _ approval: ChallengeID? = nil, _ edit: (inout UserChange) -> Void
    ) async throws -> ChangedUser {
        var change = UserChange()
        edit(&change)
        let edited = change
        return try await rig.on { relay in
            try await relay.change(
                username: username, edited, approval: approval, by: website, as: relay.operations.new())
        }
    }

    func confirm(_ address: String, _ code: String) async throws -> Bool {
        try await rig.on { relay in
            try await relay.confirm(
                address: address, code: code, username: username, by: website, as: relay.operations.new())
        }
    }

    func sendCode(to address: String) async throws {
        try await rig.on { relay in
            try await relay.sendCode(to: address, username: username, by: website, as: relay.operations.new())
        }
    }
}

/// Returns the code from a message that confirms an address.
func addressCode(_ message: Message) throws -> String {
    guard case .code(let code) = message.content, code.purpose == .address else { throw RigFailure("no code") }
    return String(decoding: code.digits.reveal(), as: UTF8.self)
}
