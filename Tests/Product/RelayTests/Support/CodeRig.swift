import Bytes
import Domain
import Relay
import Storage
import TestSupport
import World

/// The user's authenticator app, and the website's requests about factors.
extension Person {
    /// Returns the code that an app with this secret shows now, or `steps` time steps later.
    func code(_ secret: String, steps: Int64 = 0, digits: Int = 6) throws -> String {
        guard let key = Base32.decode(secret) else { throw RigFailure("no base32: \(secret)") }
        let step = OTP.step(at: rig.time.now(), period: 30) + steps
        return OTP.code(secret: Secret(key), counter: UInt64(step), algorithm: .sha1, digits: digits)
    }

    /// Returns a code that is certainly different.
    func wrong(_ code: String) -> String { String(code.map { $0 == "9" ? "0" : "9" }) }

    func addTOTP(
        _ shape: CodeShape = CodeShape(), code: String? = nil, approval: ChallengeID? = nil,
        as operation: Operation? = nil
    ) async throws -> TOTPSetup {
        let operation = operation ?? rig.relay.operations.new()
        return try await rig.on { relay in
            try await relay.addTOTP(
                username: username, shape: shape, code: code, approval: approval, by: website, as: operation)
        }
    }

    func confirm(_ code: String, as operation: Operation? = nil) async throws -> Bool {
        let operation = operation ?? rig.relay.operations.new()
        return try await rig.on { relay in
            try await relay.confirmTOTP(username: username, code: code, by: website, as: operation)
        }
    }

    /// Adds an active app, and returns its secret.
    func withTOTP() async throws -> String {
        let setup = try await addTOTP()
        guard try await confirm(try code(setup.secret)) else { throw RigFailure("not confirmed") }
        return setup.secret
    }

    func addHOTP(_ secret: Secret, counter: Int64 = 0, approval: ChallengeID? = nil, as operation: Operation? = nil)
        async throws -> CodeFactor
    {
        let operation = operation ?? rig.relay.operations.new()
        return try await rig.on { relay in
            try await relay.addHOTP(
                username: username, seed: TokenSeed(secret: secret, counter: counter), shape: CodeShape(),
                approval: approval, by: website, as: operation)
        }
    }

    func resynchronise(_ codes: [String]) async throws -> Bool {
        try await rig.on { relay in
            try await relay.resynchronise(
                username: username, codes: codes, by: website, as: relay.operations.new())
        }
    }

    func drop(_ kind: Factor) async throws {
        try await rig.on { relay in try await relay.drop(kind, username: username, by: website) }
    }

    func factors() async throws -> [CodeFactor] {
        try await rig.on { relay in
            try await relay.codeFactors(of: try await relay.user(named: username, of: website))
        }
    }

    func unlock() async throws {
        try await rig.on { relay in
            try await relay.unlock(username: username, by: website, as: relay.operations.new())
        }
    }

    /// Unlocks the user, as `twoefay user unlock` does.
    func unlockByOperator() async throws {
        let (store, now) = (rig.store, rig.time.now())
        let unlocked = try await rig.on { relay in
            let user = try await relay.user(named: username, of: website).id
            return try await store.unlock(
                user, from: [.locked, .frozen], by: .operator, at: now, as: relay.operations.new())
        }
        guard unlocked else { throw RigFailure("nothing to unlock") }
    }

    func addRecoveryCodes(as operation: Operation? = nil) async throws -> [String] {
        let operation = operation ?? rig.relay.operations.new()
        return try await rig.on { relay in
            try await relay.addRecoveryCodes(username: username, approval: nil, by: website, as: operation).codes
        }
    }

    func unlock(by code: String, as operation: Operation? = nil) async throws -> Bool {
        let operation = operation ?? rig.relay.operations.new()
        return try await rig.on { relay in
            try await relay.unlock(username: username, code: code, by: website, as: operation)
        }
    }

    var isProved: Bool {
        get async throws {
            try await rig.on { relay in try await relay.user(named: username, of: website).isProved }
        }
    }
}

/// Runs a request, and returns its refusal; nil if it succeeded.
func refusal<Value>(_ call: () async throws -> Value) async -> Refusal? {
    do {
        _ = try await call()
        return nil
    } catch {
        return error as? Refusal ?? .broken
    }
}
