import Bytes
import Crypto
import EventLoop
import HTTP
import HTTP2
import JSON
import Log
import TLS
import World

/// The request for an access token: a signed statement of the service account, in exchange for a
/// token of an hour (RFC 7523). It has a connection of its own, because there is one in an hour.
struct AccessTokenRequest: Sendable {
    struct Issued: Equatable, Sendable {
        /// The value of `authorization`.
        let value: String
        let life: Duration
    }

    static let scope = "https://www.googleapis.com/auth/firebase.messaging"
    /// The lifetime of the statement, the longest that Google accepts.
    private static let life = Duration.seconds(3600)
    private static let deadline = Duration.seconds(5)

    let account: FCMServiceAccount
    let tls: TLSClientContext
    let options: PushOptions
    let time: any TimeSource
    let log: Log

    /// Asks for a token on the current loop.
    func send(on loop: EventLoop) async -> Result<Issued, AuthorizationFailure> {
        let statement: String
        do throws(CryptoFailure) { statement = try signed() } catch {
            return .failure(.refused("the request for an access token cannot be signed: \(error.description)"))
        }
        let endpoint = account.tokenEndpoint
        let addresses: [SocketAddress]
        switch await options.resolver(endpoint.host, endpoint.port) {
        case .failure(let failure): return .failure(unreachable("cannot resolve: \(failure.reason)"))
        case .success(let found): addresses = found
        }
        var limits = options.client
        limits.maxQueued = 1
        let client = HTTP2Client(
            loop: loop, host: endpoint.host, port: endpoint.port, tls: tls, options: limits, log: log)
        defer { client.close() }
        do throws(ConnectionFailure) { try await client.connect(to: addresses) } catch {
            return .failure(unreachable(error.description))
        }
        let form = "grant_type=" + PercentEncoding.encode("urn:ietf:params:oauth:grant-type:jwt-bearer")
        let request = ClientRequest(
            method: "POST", path: account.tokenPath, authority: endpoint.authority,
            fields: Fields([Fields.Field("content-type", "application/x-www-form-urlencoded")]),
            body: Array((form + "&assertion=" + statement).utf8))
        switch await client.send(request, deadline: Self.deadline) {
        case .success(let response): return read(response)
        case .failure(.notSent(let reason)), .failure(.ambiguous(let reason)): return .failure(unreachable(reason))
        }
    }

    /// The statement that the account asks for a token. The receiver checks it by the account's
    /// public key.
    func signed() throws(CryptoFailure) -> String {
        let now = time.now()
        let claims: JSONObject = [
            "iss": .string(account.email), "scope": .string(Self.scope), "aud": .string(account.tokenURL),
            "iat": .integer(now.seconds), "exp": .integer((now + Self.life).seconds),
        ]
        var header: JSONObject = ["typ": "JWT"]
        if let keyID = account.keyID { header["kid"] = .string(keyID) }
        return try JWS.sign(header: header, payload: JSONWriter.write(claims), key: account.key)
    }

    func read(_ response: Response) -> Result<Issued, AuthorizationFailure> {
        let body = (try? JSONReader.read(response.body))?.object
        guard response.status == 200 else {
            let code = body?["error"]?.string.flatMap(ServiceText.readable) ?? "\(response.status)"
            let reason = "no access token: \(account.tokenEndpoint.host) answers \(code)"
            // Only these say that the account or its statement is refused.
            guard [400, 401, 403].contains(response.status) else { return .failure(.unavailable(reason)) }
            return .failure(.refused(reason + (code == "invalid_grant" ? ": check the account and the clock" : "")))
        }
        guard let token = body?["access_token"]?.string, let seconds = body?["expires_in"]?.integer,
            (1...86_400).contains(seconds), (1...8192).contains(token.utf8.count),
            token.utf8.allSatisfy({ (0x21...0x7e).contains($0) })
        else { return .failure(unreachable("an answer without a token")) }
        return .success(Issued(value: "Bearer " + token, life: .seconds(seconds)))
    }

    private func unreachable(_ reason: String) -> AuthorizationFailure {
        .unavailable("no access token: \(account.tokenEndpoint.host): \(reason)")
    }
}
