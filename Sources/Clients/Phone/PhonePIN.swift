import Bytes
import Crypto
import JSON
import World

/// The state of the phone's PIN at the relay.
public struct PINStatus: Sendable, Equatable {
    /// `none`, `set` or `locked`.
    public let state: String
    /// The number of settings of the PIN so far.
    public let version: Int64
    public let triesLeft: Int64
    public let pukTriesLeft: Int64

    init(_ answer: RelayAnswer) throws(CallFailure) {
        guard let pin = try answer.accepted()["pin"]?.object, let state = pin["state"]?.string,
            let version = pin["version"]?.integer, let triesLeft = pin["tries_left"]?.integer,
            let pukTriesLeft = pin["puk_tries_left"]?.integer
        else { throw answer.odd("without the state of the PIN") }
        self.state = ScreenText.visible(state, limit: 32)
        self.version = version
        self.triesLeft = triesLeft
        self.pukTriesLeft = pukTriesLeft
    }
}

/// A change of the phone's PIN, with everything that the phone signs for it.
public struct NewPIN: Sendable {
    public enum Change: Sendable {
        case set(puk: String)
        case change(old: String)
        /// Resets the PIN with the former PUK.
        case reset(formerPUK: String, puk: String)
        /// Sets a new PIN with the code that the help desk has read out.
        case unlock(code: String, puk: String)

        var word: String {
            switch self {
            case .set: "set"
            case .change: "change"
            case .reset: "reset"
            case .unlock: "unlock"
            }
        }
    }

    public let pin: String
    public let change: Change

    public init(_ pin: String, _ change: Change) {
        self.pin = pin
        self.change = change
    }
}

/// The PIN of the phone. The relay alone notices a wrong one.
extension Responder {
    public func pinStatus() async throws(CallFailure) -> PINStatus {
        try PINStatus(try await send(.init("/device/pin", method: "GET")))
    }

    /// Sets, changes, resets or unlocks the PIN. If the relay gives no answer, the same request is sent again:
    /// it counts once.
    ///
    /// - Parameters:
    ///   - new: the change.
    ///   - present: the state of the PIN before.
    public func change(_ new: NewPIN, from present: PINStatus) async throws(CallFailure) -> PINStatus {
        let body: JSONObject
        do throws(CryptoFailure) {
            guard let secret = enrolment.pinSecret else { throw CryptoFailure("the phone has no secret for a PIN") }
            body = try Self.body(
                new, version: present.version + 1, of: enrolment, device: device, secret: secret,
                at: line.clock.now())
        } catch {
            throw .unable(error.description)
        }
        do throws(CallFailure) {
            return try PINStatus(try await send(.init("/device/pin", body: body)))
        } catch {
            guard case .ambiguous = error else { throw error }
            return try PINStatus(try await send(.init("/device/pin", body: body)))
        }
    }

    static func body(
        _ new: NewPIN, version: Int64, of enrolment: Enrolment, device: String, secret: PINSecret, at now: Timestamp
    ) throws(CryptoFailure) -> JSONObject {
        let key = try secret.key(of: new.pin, for: .pin)
        var pukKey: P256PrivateKey?
        switch new.change {
        case .set(let puk), .reset(_, let puk), .unlock(_, let puk): pukKey = try secret.key(of: puk, for: .puk)
        case .change: break
        }
        var code: String?
        if case .unlock(let typed, _) = new.change { code = typed }
        let statement = try SignedStatement.pin(
            new.change.word, version: version, key: key.publicKey, pukKey: pukKey?.publicKey, unlockCode: code,
            of: enrolment, device: device, at: now)
        var body: JSONObject = ["pin": .string(statement)]
        switch new.change {
        case .set, .unlock: break
        case .change(let old):
            body.set(
                "pin_signature",
                .string(try SignedStatement.signature(over: statement, by: secret.key(of: old, for: .pin))))
        case .reset(let former, _):
            body.set(
                "puk_signature",
                .string(try SignedStatement.signature(over: statement, by: secret.key(of: former, for: .puk))))
        }
        return body
    }
}
