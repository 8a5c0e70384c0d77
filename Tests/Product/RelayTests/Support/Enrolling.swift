import Crypto
import Domain
import JSON
import Relay
import Storage
import TestSupport
import World

typealias Bind = Result<Binding, Refusal>

extension Bind {
    var bound: Bound? {
        if case .success(.bound(let bound)) = self { bound } else { nil }
    }

    /// The number that the waiting phone shows; nil when it does not wait or has none to show.
    var number: String? {
        if case .success(.waiting(_, let number)) = self { number } else { nil }
    }

    var isWaiting: Bool {
        if case .success(.waiting) = self { true } else { false }
    }

    var refusal: Refusal? {
        if case .failure(let refusal) = self { refusal } else { nil }
    }
}

/// A user of a website, who answers with a phone's certificate.
struct Person: Sendable {
    let rig: RelayRig
    let website: Website
    let username: String
    let token: UserToken
    /// The activation code from the registration.
    let code: String

    static func registered(
        _ username: String, at website: Website, _ rig: RelayRig, email: String? = nil
    ) async throws -> Person {
        let (token, activation) = try await rig.on { relay in
            try await relay.register(
                Registration(username: username, email: email, phone: nil, displayName: nil, language: nil),
                by: website, as: relay.operations.new())
        }
        return Person(rig: rig, website: website, username: username, token: token, code: try activation.code)
    }

    /// Requests another activation code, without an approval if none is needed.
    func furtherCode(_ approval: ChallengeID? = nil, as operation: Operation? = nil) async throws -> String {
        let operation = operation ?? rig.relay.operations.new()
        return try await rig.on { relay in
            try await relay.activate(username: username, approval: approval, by: website, as: operation).code
        }
    }

    /// Requests an activation code, and returns the refusal; nil if there is a code.
    func refusedCode(_ approval: ChallengeID? = nil, as operation: Operation? = nil) async -> Refusal? {
        do {
            _ = try await furtherCode(approval, as: operation)
            return nil
        } catch {
            return error as? Refusal ?? .broken
        }
    }

    func bind(_ phone: TestPhone, _ code: String, from sender: String = "192.0.2.1") async -> Bind {
        do {
            return .success(
                try await rig.bind(phone, user: token, code: code, website: website.name, from: sender))
        } catch {
            return .failure(error as? Refusal ?? .broken)
        }
    }

    /// Binds a phone that does not have to wait.
    func bound(_ phone: TestPhone, _ code: String) async throws -> PhoneCredential {
        let bind = await bind(phone, code)
        guard let bound = bind.bound else { throw RigFailure("not bound: \(bind)") }
        return try await credential(phone, bound.device)
    }

    func credential(_ phone: TestPhone, _ device: DeviceID) async throws -> PhoneCredential {
        let key = phone.key.publicKey.spkiThumbprint
        return try await rig.on { relay in try await relay.device(device, key: key, isCertified: true) }
    }

    func devices() async throws -> [DeviceView] {
        try await rig.on { relay in
            try await relay.devices(of: try await relay.user(named: username, of: website))
        }
    }

    func login() async throws -> OpenedChallenge {
        try await rig.on { relay in
            try await relay.login(LoginRequest(subject: .token(token)), by: website, as: relay.operations.new())
        }
    }

    @discardableResult func decide(
        _ challenge: ChallengeID, _ decision: Decision, _ number: String? = nil, by phone: PhoneCredential
    ) async throws -> ChallengeLife.Result {
        let answer = PhoneAnswer(approves: decision == .approve, number: number)
        return try await rig.on { relay in try await relay.answer(challenge, answer, by: phone) }
    }

    func reported(_ challenge: ChallengeID) async throws -> ChallengeResult {
        try await rig.on { relay in try await relay.result(challenge, to: website) }
    }

    /// Returns the challenge of the last push.
    func lastAsked() throws -> ChallengeID {
        guard let push = rig.pushes.sent.last else { throw RigFailure("nothing was asked") }
        return push.challenge
    }
}

extension RelayRig {
    /// Adds a website whose users answer with client certificates.
    func shop(_ name: String = "shop", _ policies: [String: String] = [:], webhook: String? = nil) async throws
        -> Website
    {
        try await website(
            name, policies: ["answers": "certificate"].merging(policies) { $1 }, webhook: webhook)
    }

    /// Changes a phone, as `twoefay device` does. Returns false if there is nothing to change, or if its state does
    /// not permit it.
    func byOperator(_ state: DeviceState, _ device: DeviceID) async throws -> Bool {
        let (store, now) = (store, time.now())
        return try await on { relay in
            guard let found = try await store.run(Accounts.device(device)) else { throw RigFailure("no \(device)") }
            let change = DeviceChange.byOperator(
                state, found.view, of: found.user, stoppedBy: found.stoppedBy, at: now)
            guard let change else { return false }
            return try await store.run(Phones.change(change, as: relay.operations.new())) != nil
        }
    }

    /// Stops all users, as an operator or a sync does.
    func stop(_ state: UserState) throws {
        try execute("UPDATE user SET prior_state = CASE '\(state)' WHEN 'disabled' THEN state END")
        try execute("UPDATE user SET state = '\(state)'")
    }

    func devices(_ state: DeviceState) throws -> Int64 {
        try count("SELECT count(*) FROM device WHERE state = '\(state.rawValue)'")
    }
}
