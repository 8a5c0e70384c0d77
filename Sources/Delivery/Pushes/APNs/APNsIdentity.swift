import Log
import TLS
import World

extension PushIdentity {
    /// Makes an identity for Apple.
    ///
    /// - Parameter former: the previous identity. Its provider token, or the one before it, is
    ///   reused if the key is the same.
    convenience init(
        _ credential: APNsCredential, trust: TLSClientContext.Roots, former: PushIdentity? = nil,
        time: any TimeSource, log: Log
    ) throws {
        let known = [former?.authorization, former?.formerAuthorization].compactMap { $0 as? ProviderToken }
        switch credential {
        case .token(let key, let keyID, let teamID):
            let token =
                try known.first { $0.isOf(key, keyID: keyID, teamID: teamID) }
                ?? ProviderToken(key: key, keyID: keyID, teamID: teamID, time: time, log: log)
            self.init(
                tls: try TLSClientContext(roots: trust), authorization: token,
                formerAuthorization: known.first { $0 !== token }, events: .apns, log: log)
        case .certificate(let chainPEM, let key):
            self.init(
                tls: try TLSClientContext(roots: trust, certificateChainPEM: chainPEM, privateKeyPEM: key),
                authorization: nil, formerAuthorization: known.first, events: .apns, log: log)
        }
    }
}
