import Attestation
import Bytes
import Crypto
import HTTP
import JSON
import World

/// The client of one website at its relay. It pins the keys of the users' phones in the website's
/// store, and checks a receipt for each login.
///
///     let relay = try TwoefayRelay(
///         origin: "https://login.example.com:8080", ca: "ca.pem", certificate: "shop.pem",
///         key: "shop.key", store: store)
///     let login = try await relay.ask("ada", ip: visitor)
///     show(login.number)
///     if try await relay.wait(for: login).isApproved { … }
///
/// Make one for the process and share it. Its calls have the same names, rules and errors in the
/// clients of all languages (clients/README.md), which run the same suite of cases. An error of this
/// library is a `TwoefayError`; others come from the store.
///
/// If the task of a call is cancelled, the call may have reached the phone, or have spent the
/// approval. Tested in `ConformanceTests.swift` and `WebsiteTests.swift`.
public struct TwoefayRelay: Sendable {
    /// The calls that are not checked here: a function for each route of websites.
    public let client: RelayClient
    /// The store of pinned keys.
    public let store: any Store
    /// The requirements of the website.
    public let requirements: Requirements
    let receipts: ReceiptCheck
    let bindings: BindingCheck
    /// The hosts at which people enter their password.
    let loginHosts: [String]

    /// Creates a client with its own connections, which open with the first call.
    ///
    /// - Parameters:
    ///   - origin: the relay's origin, exactly as in its settings: `https://host:port`.
    ///   - ca: the path of the relay's `ca.pem`.
    ///   - certificate: the path of the website's certificate from `twoefay website add`.
    ///   - key: the path of its private key.
    ///   - store: the website's store of pinned keys.
    ///   - requirements: what the website demands of a login. The default is the strong form.
    /// - Throws: `CallFault.unable` if a file or a requirement is wrong.
    public init(
        origin: String, ca: String, certificate: String, key: String, store: any Store,
        requirements: Requirements = Requirements()
    ) throws(CallFault) {
        let pem = try OwnFile.read(certificate)
        let uri = (try? Certificate(pem: pem))?.uris
        guard let uri, uri.count == 1, uri[0].hasPrefix(Self.prefix), uri[0] != Self.prefix else {
            throw .unable("\(certificate) is not the certificate of a website")
        }
        let carrier = try HTTP2Carrier(
            origin: origin, authority: try OwnFile.read(ca), certificate: pem, key: Secret(try OwnFile.read(key)))
        try self.init(
            carrier, origin: origin, website: String(uri[0].dropFirst(Self.prefix.count)), store: store,
            requirements: requirements)
    }

    /// Creates a client over a given carrier.
    ///
    /// - Parameters:
    ///   - carrier: the carrier of calls, for example a wrapper of the website's own HTTP client.
    ///   - origin: the relay's origin, exactly as in its settings: `https://host:port`.
    ///   - website: the name of this website, as in its certificate.
    ///   - store: the website's store of pinned keys.
    ///   - requirements: what the website demands of a login.
    ///   - time: the clock; tests pass another one.
    ///   - randomness: the source of randomness; tests pass another one.
    public init(
        _ carrier: any Carrier, origin: String, website: String, store: any Store,
        requirements: Requirements = Requirements(), time: any TimeSource = SystemTime(),
        randomness: any Randomness = SystemRandomness()
    ) throws(CallFault) {
        // Phones sign the origin, so it must be the one of the relay's settings.
        guard WebAddress(origin)?.text == origin else {
            throw .unable("the relay's origin must be https://host:port, not '\(origin)'")
        }
        guard (0...Requirements.mostDigits).contains(requirements.leastDigits) else {
            throw .unable("leastDigits must be between 0 and \(Requirements.mostDigits)")
        }
        guard requirements.longestVerificationAge ?? 0 >= 0 else {
            throw .unable("longestVerificationAge must not be negative")
        }
        if let app = requirements.appOrigin {
            let web = WebPhone(app: app, passkey: nil)
            let relay = WebPhone.host(of: origin.lowercased())
            guard WebPhone.host(of: app) != nil, !web.isServed(by: [relay].compactMap { $0 }) else {
                throw .unable("appOrigin must be https://host of a web app that the relay does not serve, not '\(app)'")
            }
        }
        loginHosts = requirements.loginOrigins.compactMap { WebPhone.host(of: $0) }
        guard loginHosts.count == requirements.loginOrigins.count else {
            throw .unable("each of loginOrigins must be https://host or https://host:port")
        }
        client = RelayClient(carrier, retries: .website, time: time, randomness: randomness)
        self.store = store
        self.requirements = requirements
        receipts = ReceiptCheck(
            origin: origin, website: website, displayName: requirements.displayName,
            leastVerification: requirements.leastUserVerification,
            longestVerificationAge: requirements.longestVerificationAge, leastDigits: requirements.leastDigits,
            longestAge: Self.longestLife.components.seconds)
        bindings = BindingCheck(
            origin: origin, website: website, phones: requirements.phones, app: requirements.appOrigin)
    }

    /// Calls any other route of the relay, with the same retries and errors.
    ///
    /// - Parameters:
    ///   - path: the path, which begins with "/".
    ///   - body: the JSON to send; nil for none.
    @discardableResult
    public func call(_ method: String, _ path: String, _ body: JSONObject? = nil) async throws(CallFault) -> JSONObject
    {
        try await client.call(method, path, body)
    }

    var now: Int64 { client.time.now().seconds }

    private static let prefix = "twoefay:website:"
    /// The longest life of a challenge. A later approval was held back.
    static let longestLife = Duration.seconds(600)
}
