import Bytes
import Crypto
import EventLoop
import HTTP
import JSON
import Synchronization
import TLS
import World

/// The client of a bound phone: it polls for challenges, answers them, and maintains the phone's
/// data at the relay. Tested in `ResponderTests.swift`, `RealRelayTests.swift` and
/// `HostileRelayTests.swift`.
public final class Responder: Sendable {
    /// The method by which the relay authenticates the phone.
    public enum Identity: Sendable {
        case certificate
        case dpop
    }

    /// The pending challenges of this phone.
    public struct Pending: Sendable {
        public var questions: [ChallengePrompt] = []
        /// The challenges that this phone must not answer.
        public var refused: [ChallengePrompt.Refused] = []
        /// The enrolment with the pins that the relay's authority has stated; nil if they stay. The
        /// caller must store it, and use it for the next responder.
        public var repinned: Enrolment?
        /// The reason why the phone did not take a statement about pins; nil if there was none.
        public var pinsFault: PinStatement.Malformed?

        public var isEmpty: Bool { questions.isEmpty && refused.isEmpty }
        public var challenges: [String] { questions.map(\.challenge) + refused.compactMap(\.challenge) }
    }

    /// The remaining lifetime below which a certificate is renewed.
    public static let renewal: Duration = .seconds(30 * 86_400)
    /// The longest time for which the relay holds a request, in seconds.
    public static let longestWait: Int = 60
    /// The most known challenges that the relay accepts in one request.
    private static let mostKnown = 16

    public let enrolment: Enrolment
    public let device: String
    let line: RelayConnection
    private let time: any TimeSource
    private let dpop: DPoP?
    private let unread = Mutex(0)
    /// The open requests for certificates, also those that this responder has made.
    let requests: Mutex<OpenRequests>

    /// Creates a responder for a bound phone. If the certificate has expired, TLS cannot use it, so
    /// the responder uses DPoP with the key instead. So it does if there is no certificate yet.
    ///
    /// - Parameter language: the language of the relay's texts, as an Accept-Language value; nil for
    ///   English.
    public init(
        _ enrolment: Enrolment, by identity: Identity = .certificate, language: String? = nil, loop: EventLoop,
        randomness: any Randomness = SystemRandomness(), witness: RelayConnection.Observer? = nil
    ) throws(CallFailure) {
        guard case .bound(let device, let certificate) = enrolment.state else {
            throw .unable("the phone is not bound yet")
        }
        self.enrolment = enrolment
        self.device = device
        requests = Mutex(enrolment.openRequests)
        let clock = RelayClock(loop.time, offset: enrolment.clockOffset)
        time = clock
        let usesKey: Bool =
            switch identity {
            case .dpop: true
            case .certificate: certificate.map { $0.notAfter <= clock.now() } ?? true
            }
        do {
            let tls = try TLSClientContext(
                roots: .pinned(enrolment.pin, next: enrolment.nextPin),
                certificateChainPEM: usesKey ? nil : try certificate?.pem(),
                privateKeyPEM: usesKey ? nil : try enrolment.key.pem(), dates: .clock(clock))
            line = RelayConnection(
                loop: loop, relay: enrolment.relay, tls: tls, clock: clock, pin: enrolment.pin,
                nextPin: enrolment.nextPin, language: language, randomness: randomness, witness: witness)
        } catch {
            throw .unable("the phone's certificate does not work: \(error)")
        }
        dpop =
            usesKey
            ? DPoP(key: enrolment.key, origin: enrolment.relay.text, time: clock, randomness: randomness) : nil
    }

    public func close() { line.close() }

    /// The number of notices that no phone of the user has fetched, as the latest answer said.
    public var messageCount: Int { unread.withLock { $0 } }

    /// Asks the relay for its signed time, and corrects this relay's clock.
    ///
    /// - Returns: what was measured, and the enrolment with the new offset.
    public func synchronise() async throws(CallFailure) -> (SignedTime, Enrolment) {
        let signed = try await line.synchronise()
        var changed = enrolment
        changed.clockOffset = signed.offset
        return (signed, changed)
    }

    // MARK: Requests

    /// Returns the pending challenges.
    ///
    /// - Parameters:
    ///   - seconds: how long the relay holds the request, until its pending challenges differ from
    ///     `known`. 0 returns at once.
    ///   - known: the ids of the challenges that this phone already has.
    public func pending(waiting seconds: Int = 0, knowing known: [String] = []) async throws(CallFailure) -> Pending {
        var call = RelayConnection.PhoneRequest("/pending")
        call.body.set("pins", .array(enrolment.pins.map { .string(Base64URL.encode($0)) }))
        call.body.set("pins_seq", .integer(enrolment.pinSequence))
        if seconds > 0 {
            if !known.isEmpty { call.body.set("known", .array(known.prefix(Self.mostKnown).map { .string($0) })) }
            call.fields = [.init("prefer", "wait=\(min(seconds, Self.longestWait))")]
            call.timeout += .seconds(min(seconds, Self.longestWait))
        }
        let answer = try await send(call)
        guard let entries = try answer.accepted()["pending"]?.array,
            let now = Timestamp(rfc3339: try answer.text("time"))
        else { throw answer.odd("without pending or time") }
        var pending = Pending()
        if let statement = try answer.accepted()["pins"]?.string { take(statement, into: &pending) }
        for entry in entries {
            do throws(ChallengePrompt.Refused) {
                pending.questions.append(try ChallengePrompt(entry, website: enrolment.website, now: now))
            } catch {
                pending.refused.append(error)
            }
        }
        return pending
    }

    /// Signs and sends the person's decision.
    ///
    /// - Parameters:
    ///   - decision: the person's decision.
    ///   - question: the challenge.
    ///   - uv: the method by which the phone verified its owner.
    ///   - uvAge: the seconds since then. It is sent only if the website demands it.
    ///   - place: the coarse place of the phone, if the person agrees to report it. It is sent only if
    ///     the website asks for it.
    ///   - posture: the state of the phone. It is sent only if the website has demands.
    ///   - pin: the PIN that the person typed. It signs an approval only if the relay demands it.
    /// - Returns: the result at the relay, `success` or `failure`.
    public func answer(
        _ decision: SignedStatement.Decision, to question: ChallengePrompt,
        uv: SignedStatement.UserVerification = .none, uvAge: Int64? = nil, place: PhonePlace? = nil,
        posture: PhonePosture? = nil,
        pin: String? = nil
    ) async throws(CallFailure) -> String {
        var body: JSONObject = ["challenge": .string(question.challenge)]
        var path = "/failure"
        do {
            let now = time.now()
            let statement = try SignedStatement.decision(
                decision, about: question, by: enrolment, device: device, uv: uv, uvAge: uvAge, place: place,
                posture: posture, at: now)
            body.set("answer", .string(statement))
            if case .approve = decision {
                path = "/success"
                if question.demands != nil {
                    let assertion = try enrolment.platformAttests?.assertion(
                        over: statement, at: now, enrolledAt: enrolment.madeAt)
                    body.set("assertion", assertion.map { .string($0) })
                }
                if question.demands?.needsPIN == true, let pin, let secret = enrolment.pinSecret {
                    let key = try secret.key(of: pin, for: .pin)
                    body.set("pin_signature", .string(try SignedStatement.signature(over: statement, by: key)))
                }
            }
        } catch {
            throw .unable("\(error)")
        }
        let answer = try await sendUntilAnswered(.init(path, body: body))
        let login = try answer.text("login")
        guard login == "success" || login == "failure" else { throw answer.odd("with login \"\(login)\"") }
        return login
    }

    /// Sends an answer, and sends the same bytes again if the relay gives no answer or fails. The
    /// relay counts the same bytes once: a wrong PIN that was signed anew would be a further try.
    private func sendUntilAnswered(_ call: RelayConnection.PhoneRequest) async throws(CallFailure) -> RelayAnswer {
        var isRepeated = false
        for _ in 0..<2 {
            do throws(CallFailure) {
                let answer = try await send(call)
                guard answer.status >= 500 else { return isRepeated ? answer.ofRepetition : answer }
            } catch {
                guard case .ambiguous = error else { throw error }
            }
            isRepeated = true
        }
        return try await send(call).ofRepetition
    }

    // MARK: The phone itself

    /// Whether the certificate is missing, has expired or will expire soon.
    public var isToRenew: Bool {
        guard let certificate = enrolment.certificate else { return true }
        return certificate.notAfter - time.now() < Self.renewal
    }

    /// Changes the given values at the relay, and no others.
    ///
    /// - Parameters:
    ///   - pushToken: the new device token; empty if the phone polls from now on.
    ///   - name: the new name.
    ///   - renews: whether the relay issues a new certificate.
    ///   - store: stores the enrolment with the requests for certificates, before they are sent.
    /// - Returns: the changed enrolment, with the offset of the clock if it was corrected. Its open
    ///   requests name the tags whose certificates were not renewed. A new responder is needed to use a
    ///   renewed certificate.
    public func change(
        pushToken: String? = nil, name: String? = nil, renews: Bool = false,
        storing store: (Enrolment) throws(CallFailure) -> Void = { _ in }
    ) async throws(CallFailure) -> Enrolment {
        var body: JSONObject = [:]
        var changed = enrolment
        if let pushToken {
            do {
                body.set(
                    "dev_token",
                    .string(
                        try SignedStatement.pushToken(pushToken, of: enrolment, device: device, at: time.now())))
            } catch {
                throw .unable(error.description)
            }
            changed.pushToken = pushToken.isEmpty ? nil : pushToken
        }
        if let name {
            body.set("name", .string(name))
            changed.name = name
        }
        if renews {
            let (request, prepared) = try prepare(enrolment.documentKeys.map { ($0.tag, $0.isRaw) }, own: true)
            try store(prepared)
            body.set("certificate", true)
            body.set("csr", .text(request))
        }
        let answer = try await send(.init("/device", body: body))
        try answer.accepted()
        // Otherwise a phone whose clock is ahead would renew its certificate each time.
        changed.clockOffset = line.clock.offset
        if renews {
            let certificate = try answer.certificateIfAny(for: enrolment.key)
            changed.state = .bound(device: device, certificate: certificate ?? enrolment.certificate)
            if certificate != nil { requests.withLock { $0.own = nil } }
            changed.documentKeys = try await renewedDocumentKeys()
            for key in changed.documentKeys where changed.nextDocumentKeys[key.tag]?.publicKey == key.key.publicKey {
                changed.nextDocumentKeys[key.tag] = nil
            }
        }
        changed.openRequests = requests.withLock { $0 }
        return changed
    }

    /// Removes this phone from its user at the relay.
    public func unbind() async throws(CallFailure) {
        try await send(.init("/device", method: "DELETE")).accepted()
    }

    @discardableResult
    func send(_ call: RelayConnection.PhoneRequest) async throws(CallFailure) -> RelayAnswer {
        let answer: RelayAnswer
        if let dpop {
            answer = try await dpop.send(call, over: line)
        } else {
            answer = try await line.send(call)
        }
        // A refused proof says nothing about the user.
        guard answer.status == 401 else {
            unread.withLock { $0 = answer.messageCount }
            return answer
        }
        // A phone that was unbound learns it for certain.
        if let farewell = try? await farewell() { throw .unbound(farewell) }
        return answer
    }
}

/// Removes a phone without the phone itself, by the revocation code that the person wrote down.
public enum Revocation {
    /// Removes the phone to which the code belongs.
    ///
    /// - Parameters:
    ///   - code: the revocation code.
    ///   - relay: the address of the relay.
    ///   - roots: the roots to trust: the pin, if it is known.
    ///   - language: the language of the relay's texts, as an Accept-Language value; nil for English.
    ///   - loop: the event loop of the connection.
    public static func revoke(
        _ code: String, at relay: WebAddress, believing roots: TLSClientContext.Roots, language: String? = nil,
        loop: EventLoop
    ) async throws(CallFailure) {
        let line: RelayConnection
        do {
            line = RelayConnection(
                loop: loop, relay: relay, tls: try TLSClientContext(roots: roots), language: language)
        } catch {
            throw .unable("\(error)")
        }
        defer { line.close() }
        try await line.send(.init("/revoke", body: ["revocation_code": .string(code)])).accepted()
    }
}
