/// The parts that the app provides.
public struct PhoneParts: Sendable {
    public var cryptography: any Cryptography
    public var keys: any PhoneKeys
    public var transport: any Transport
    public var storage: any PhoneStorage
    public var clock: any PhoneClock = SystemClock()
    /// The attestation of the platform; nil if it has none.
    public var attester: (any Attester)?
    /// The languages of the person, as a value of `Accept-Language`.
    public var languages: String?

    public init(
        cryptography: any Cryptography, keys: any PhoneKeys, transport: any Transport, storage: any PhoneStorage
    ) {
        self.cryptography = cryptography
        self.keys = keys
        self.transport = transport
        self.storage = storage
    }
}

/// Stores enrolments: in the keychain, for this device only and in no backup.
public protocol PhoneStorage: Sendable {
    /// Stores the enrolment under its `id`, in place of a former one. It returns when it is stored.
    func store(_ enrolment: Enrolment) throws
    /// Deletes the enrolment, and with it the keys.
    func remove(_ id: String) throws
}

/// A phone at one website. All its functions store what they learn before they use it.
///
/// Each request carries a proof by the phone's key (DPoP, RFC 9449). So the app needs no client
/// certificate, and nothing has to be renewed.
public actor Phone {
    public private(set) var enrolment: Enrolment
    /// The number of notices that no phone of the user has fetched, as the latest answer said.
    public private(set) var messageCount = 0

    nonisolated let parts: PhoneParts
    nonisolated let key: any SigningKey
    /// The newest nonce of the relay.
    private var nonce: String?

    var cryptography: any Cryptography { parts.cryptography }

    /// The relay's time, as far as the phone knows it.
    var now: Timestamp { Timestamp(milliseconds: parts.clock.now().milliseconds + enrolment.clockOffset) }

    /// Loads a phone that was stored.
    public init(_ enrolment: Enrolment, _ parts: PhoneParts) throws(PhoneError) {
        self.enrolment = enrolment
        self.parts = parts
        key = try signing { try parts.keys.signingKey(stored: enrolment.key) }
    }

    public nonisolated var publicKey: P256PublicKey { key.publicKey }

    /// The thumbprint of the key, which the person compares with the screen of another phone.
    public nonisolated var thumbprint: String { key.publicKey.thumbprint(parts.cryptography) }

    /// Changes the enrolment, and stores it first.
    func change(_ edit: (inout Enrolment) -> Void) throws(PhoneError) {
        var changed = enrolment
        edit(&changed)
        guard changed != enrolment else { return }
        try signing { try parts.storage.store(changed) }
        enrolment = changed
    }

    /// Deletes the enrolment with its keys: after a farewell, or when the person insists.
    public func forget() throws(PhoneError) { try signing { try parts.storage.remove(enrolment.id) } }

    /// The id of the phone at the relay.
    func device() throws(PhoneError) -> String {
        guard let device = enrolment.device else { throw .unable("the phone is not bound yet") }
        return device
    }

    /// Signs a statement about this phone, which is bound.
    func sign(_ type: String, _ claims: JSONObject) throws(PhoneError) -> String {
        let device = try device()
        return try signing { try JWS.sign(type, ("kid", .string(device)), claims, by: key) }
    }

    // MARK: Requests

    /// Sends a request with a proof of the phone's key.
    func send(_ request: RelayRequest, isFresh: Bool = false) async throws(PhoneError) -> RelayAnswer {
        var (hasNewNonce, hasNewTime, isFresh) = (false, false, isFresh)
        while true {
            let used = nonce
            var proved = request
            let claims = Statement.dpop(
                request.method, enrolment.relay.text + request.path, id: Base64URL.encode(cryptography.random(16)),
                nonce: used, at: now)
            proved.fields["dpop"] = try signing {
                try JWS.sign("dpop+jwt", ("jwk", .object(key.publicKey.jwk)), claims, by: key)
            }
            let answer = try await exchange(proved, isFresh: isFresh)
            isFresh = false
            if let fresh = answer.fields["dpop-nonce"], !fresh.isEmpty { nonce = fresh }
            guard answer.status == 401 else {
                messageCount = answer.messageCount
                return answer
            }
            if !hasNewTime, await hasCorrectedClock(by: answer) {
                hasNewTime = true
            } else if !hasNewNonce, nonce != used {
                hasNewNonce = true
            } else {
                // A phone that was unbound learns it for certain.
                if enrolment.device != nil, let farewell = try? await goodbye(leaves: false) {
                    throw .unbound(farewell)
                }
                return answer
            }
        }
    }

    /// Sends a request whose body has the phone's time. If the relay refuses the time, the phone asks
    /// for the relay's time, and signs the body once more.
    func send(signing make: () throws(PhoneError) -> RelayRequest) async throws(PhoneError) -> RelayAnswer {
        let offset = enrolment.clockOffset
        let answer = try await send(try make())
        guard answer.refusesTime else { return answer }
        if answer.status == 409 {
            // A request of the same second was answered before.
            await parts.clock.sleep(milliseconds: 1000)
        } else if enrolment.clockOffset == offset {
            // Unless the clock was corrected after the body was signed.
            guard await hasCorrectedClock(by: answer, above: 60_000) else { return answer }
        }
        return try await send(try make())
    }

    /// Sends a request without a proof. If the dates of the relay's certificate do not fit the
    /// phone's clock, it asks for the relay's time, and sends the request again.
    func exchange(_ request: RelayRequest, isFresh: Bool = false) async throws(PhoneError) -> RelayAnswer {
        do throws(PhoneError) {
            return try await transmit(request, .checked(offset: enrolment.clockOffset), isFresh: isFresh)
        } catch {
            guard case .untrusted(let reason) = error else { throw error }
            guard try await hasAdvancedClock(after: reason) else { throw error }
            return try await transmit(request, .checked(offset: enrolment.clockOffset))
        }
    }

    func transmit(
        _ request: RelayRequest, _ dates: ServerTrust.Dates, isFresh: Bool = false
    ) async throws(PhoneError) -> RelayAnswer {
        var request = request
        if let languages = parts.languages { request.fields["accept-language"] = languages }
        let server = ServerTrust(origin: enrolment.relay, pins: enrolment.pins, dates: dates)
        do throws(TransportFailure) {
            return RelayAnswer(try await parts.transport.send(request, to: server, isFresh: isFresh))
        } catch {
            throw PhoneError(error)
        }
    }

    /// Sends a request until it is answered: the same body, after 2, 4, 8 … seconds.
    ///
    /// - Parameter limit: the milliseconds until the last attempt.
    func sendUntilAnswered(_ request: RelayRequest, within limit: Int64) async throws(PhoneError) -> RelayAnswer {
        let end = parts.clock.monotonic() + limit
        var (pause, isRepeated): (Int64, Bool) = (2000, false)
        while true {
            do throws(PhoneError) {
                let answer = try await send(request)
                guard answer.status >= 500, parts.clock.monotonic() + pause < end else {
                    return isRepeated ? answer.ofRepetition : answer
                }
            } catch {
                guard error.hasNoAnswer, parts.clock.monotonic() + pause < end else { throw error }
            }
            isRepeated = true
            await parts.clock.sleep(milliseconds: pause)
            pause = min(pause * 2, 30_000)
        }
    }
}
