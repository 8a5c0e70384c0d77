import Bytes
import JSON
import QR
import World

/// The code with which a user binds a phone. Show it once, to the logged-in user, and log none of it.
public struct Enrolment: Sendable {
    /// The user's id at the relay.
    public let token: String
    /// The link for an app on the same device, with the website's secret `k`; nil if the relay mails the
    /// code.
    public let uri: String?
    /// The masked address to which the relay mails the code.
    public let sentTo: String?
    /// The step that must come first: `identity` until an operator has confirmed who the user is.
    public let awaits: EnrolmentStep?
    /// The time at which the code expires.
    public let expiresAt: String?

    /// The QR code of `uri` as SVG, to stand in HTML; nil without a `uri`. It is drawn here, because
    /// the relay must not see `k`.
    public var qr: String? { uri.flatMap { (try? QRCode($0))?.svg() } }
}

extension Enrolment: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The token alone, so that a log does not get `k`.
    public var description: String { "enrolment of \(token)" }
    /// The token alone, so that a log does not get `k`.
    public var debugDescription: String { description }
    /// No members, so that a log does not get `k`.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

extension Enrolment {
    private static let start = "twoefay://enrol?"
    private static let longest = 2000

    /// Reads the relay's activation, and adds the kind of phones that the website takes, and `k`.
    init(
        _ activation: JSONObject, token: String, k: [UInt8], _ requirements: Requirements
    ) throws(CallFault) {
        self.token = token
        awaits = try activation.text(ifAny: "awaits").map { EnrolmentStep(rawValue: $0) }
        expiresAt = awaits == nil ? try activation.text("expires_at") : nil
        sentTo = awaits == nil ? try activation.text(ifAny: "sent_to") : nil
        guard awaits == nil, sentTo == nil else {
            uri = nil
            return
        }
        let given = try activation.text("uri")
        guard Self.isOpen(given) else { throw .odd("the activation is not a URI to which k can be added") }
        let start = requirements.appOrigin.map { "\($0)/phone/#" } ?? Self.start
        let phones = requirements.phones == .any ? "" : "&phones=\(requirements.phones.rawValue)"
        uri = "\(start)\(given.dropFirst(Self.start.count))\(phones)&k=\(Base64URL.encode(k))"
    }

    /// Whether `k` can be added: the relay must not choose it, and nothing may hide that of the
    /// website.
    private static func isOpen(_ uri: String) -> Bool {
        let isPlain = uri.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true
            default: "%&=._~:/?-".utf8.contains(byte)
            }
        }
        guard isPlain, uri.utf8.count <= longest, uri.hasPrefix(start) else { return false }
        return uri.dropFirst(start.count).split(separator: "&").allSatisfy { pair in
            !["k", "%6b", "%6B"].contains(pair.prefix { $0 != "=" })
        }
    }
}

extension TwoefayRelay {
    /// Registers a user, once. Optional values are not sent if they are nil.
    ///
    /// - Throws: a refusal with the code `.conflict` if the relay knows the user: see `enrolment`.
    public func register(
        _ username: String, email: String? = nil, phone: String? = nil, displayName: String? = nil,
        language: String? = nil, expiresAt: Timestamp? = nil
    ) async throws -> Enrolment {
        _ = try RelayClient.path(username)
        let body = RelayClient.registration(
            username, email: email, phone: phone, displayName: displayName, language: language, expiresAt: expiresAt)
        let answer: JSONObject
        do throws(CallFault) {
            answer = try await client.call("POST", "/register", body, expecting: [201])
        } catch  where error.problem?.code == .shownOnce {
            // The answer to an attempt that was done is lost: the user exists, without a phone.
            return try await enrolment(of: username)
        }
        return try await keep(try answer.object("activation"), username, try answer.id("token"))
    }

    /// Returns another code, for a further phone or after the first one has expired (ten minutes).
    ///
    /// - Parameter approval: the challenge with which the user approved this.
    /// - Throws: a refusal with the code `.approvalRequired` once the user has a factor: show the number
    ///   of `Problem.approval`, wait for its challenge, and call again with that.
    public func enrolment(of username: String, approval: String? = nil) async throws -> Enrolment {
        let path = try RelayClient.path(username, "activation")
        var token = try await store.token(of: username)
        if token == nil { token = try await user(username).id("token") }
        let activation = try await client.call(
            "POST", path, RelayClient.body(approval), expecting: [201, 202])
        return try await keep(activation, username, token ?? "")
    }

    private func keep(_ activation: JSONObject, _ username: String, _ token: String) async throws -> Enrolment {
        let k = client.randomness.bytes(32)
        let made = try Enrolment(activation, token: token, k: k, requirements)
        try await store.addUser(username, token: token)
        if made.uri != nil { try await store.addSecret(k, of: username, at: now) }
        return made
    }

    /// Pins the phones that have read a code of this website. `wait` does it, too, for a phone that was
    /// bound since the login began.
    ///
    /// - Returns: the ids of the newly pinned phones; none until a phone has read the code.
    /// - Throws: `BindingFault` if the relay reports a key that no phone proved.
    @discardableResult
    public func confirm(_ username: String) async throws -> [String] {
        let user = try await user(username)
        let token = try user.id("token")
        if let own = try await store.token(of: username), !own.isExactly(token) { throw BindingFault.token }
        return try await pin(try user.objects("devices"), of: username, token)
    }

    /// Pins every active phone with a right binding.
    private func pin(_ devices: [JSONObject], of username: String, _ token: String) async throws -> [String] {
        var known = Set(try await store.pins(of: username).map { Array($0.device.utf8) })
        // Once for all devices: a long answer must not cost a query for each.
        var secrets = try await store.secrets(of: username, at: now)
        var pinned: [String] = []
        var fault: BindingFault?
        for device in devices {
            let id = try device.id("device")
            guard !known.contains(Array(id.utf8)), device["state"]?.string == "active",
                let binding = device["binding"], !binding.isNull
            else { continue }
            let found: (phone: PinnedPhone, k: Secret)
            do throws(BindingFault) {
                found = try bindings.pinned(device, token: token, secrets: secrets.map { Secret($0) })
            } catch {
                fault = error  // another phone may be right
                continue
            }
            if try await store.pin(found.phone, of: username, with: found.k.reveal()) { pinned.append(id) }
            known.insert(Array(id.utf8))
            secrets = try await store.secrets(of: username, at: now)
        }
        if let fault, pinned.isEmpty { throw fault }
        return pinned
    }
}
