import Crypto
import Domain
import Relay
import Storage
import World

extension RelayRig {
    /// Returns an activation code from an operator, for a user who has no phone left to approve it.
    public func operatorsCode(for username: String, of website: String) async throws -> String {
        let (store, operation, now) = (store, relay.operations.new(), time.now())
        return try await on { _ in
            guard let found = try await store.run(Activations.subject(username, of: website)) else {
                throw RigFailure("there is no \(username) at \(website)")
            }
            let code = ActivationCode(OperationSecret(drawnFrom: SystemRandomness()))
            let new = NewActivation(code, for: found.user, approval: .operator, at: now)
            let activated = try await store.run(Activations.byOperator(new, as: operation))
            guard activated?.expiresAt == now + NewActivation.lifetime else {
                throw RigFailure("the operator got no code")
            }
            return code.text
        }
    }

    /// Binds another phone of a user, with an operator's activation code.
    public func further(of username: String, _ user: UserToken, at website: Website) async throws -> BoundPhone {
        let code = try await operatorsCode(for: username, of: website.name)
        let phone = try TestPhone(pushToken: "push-\(username)-\(code)")
        let binding = try await bind(phone, user: user, code: code, website: website.name)
        guard case .bound(let bound) = binding else { throw RigFailure("a further phone has to wait") }
        let key = phone.key.publicKey.spkiThumbprint
        return (phone, try await on { relay in try await relay.device(bound.device, key: key, isCertified: true) })
    }
}
