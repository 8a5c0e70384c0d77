import Domain
import HTTP
import Relay
import World

/// The identity that a certificate or a DPoP proof presents. Each request looks up whether it is
/// valid.
enum PresentedIdentity: Sendable, Equatable {
    case nobody
    case website(name: String, key: [UInt8], WebsiteCertificate)
    /// A phone with its certificate, or with a proof that was accepted before.
    case phone(DeviceID, key: [UInt8], isCertified: Bool)
    /// A caller without a certificate, whose proof names a key. The signature is not checked yet.
    case key(PresentedProof)
    case unproved(DPoP.Fault)
    /// A certificate of this installation without exactly one name, or with a name of the other
    /// authority's kind.
    case unusable

    /// Reads the identity. A certificate takes precedence over everything else in the request.
    init(_ request: Request, for route: Route, in api: API) {
        if let certificate = request.certificate {
            self.init(certificate)
        } else if route.isForPhones, request.fields[DPoP.field] != nil {
            do throws(DPoP.Fault) {
                self = .key(
                    try DPoP.read(
                        request, origins: api.settings.origins, nonces: api.relay.nonces, at: api.time.now()))
            } catch {
                self = .unproved(error)
            }
        } else {
            self = .nobody
        }
    }

    private init(_ certificate: ClientCertificate) {
        self = .unusable
        guard certificate.uris.count == 1, let uri = certificate.uris.first else { return }
        switch certificate.authority {
        case .websites:
            guard let name = Self.name(in: uri, after: Relay.websiteURI), FieldRule.websiteName(name) == nil else {
                return
            }
            self = .website(
                name: name, key: certificate.keyThumbprint,
                WebsiteCertificate(
                    notBefore: certificate.notBefore, notAfter: certificate.notAfter, issuer: certificate.issuer,
                    serial: certificate.serial))
        case .phones:
            guard let name = Self.name(in: uri, after: "twoefay:device:"), let id = DeviceID(name) else { return }
            self = .phone(id, key: certificate.keyThumbprint, isCertified: true)
        }
    }

    /// Compares bytes, because Swift's `hasPrefix` treats different encodings of a character as
    /// equal.
    private static func name(in uri: String, after prefix: String) -> String? {
        guard uri.utf8.starts(with: prefix.utf8) else { return nil }
        return String(uri.utf8.dropFirst(prefix.utf8.count))
    }
}

extension PresentedIdentity {
    /// The website's name in its certificate.
    var website: String? {
        guard case .website(let name, _, _) = self else { return nil }
        return name
    }

    /// The subject whose quota counts a request in work.
    func subject(from remote: String) -> QuotaUse.Subject {
        switch self {
        case .website(_, let key, _): .website(key: key)
        case .phone(let id, _, _): .phone(id)
        case .key(let proof): .presented(proof, from: remote)
        case .nobody, .unproved, .unusable: .stranger(remote)
        }
    }

    /// The tenant in whose queue the store looks up the caller.
    func tenant(from remote: String) -> Tenant {
        switch self {
        case .website(_, let key, _): .key(key)
        case .phone(let id, _, _): .phone(id)
        // Anybody can create a key, so only the address identifies this caller.
        case .nobody, .key, .unproved, .unusable: .anonymous(remote)
        }
    }
}

/// The caller after it was looked up.
enum Caller: Sendable {
    case anyone
    case website(Website)
    // In a box, because every step of a request passes it on.
    indirect case phone(PhoneCredential)

    /// The tenant in whose queue the request is answered; nil if it is the same as before the
    /// lookup.
    var tenant: Tenant? { website.map { .website($0.id) } }

    /// The actor of the changes that the request causes.
    var actor: Actor {
        switch self {
        case .anyone: .anyone
        case .website(let website): .website(website.name)
        case .phone(let phone): .phone(phone.id)
        }
    }

    /// The website that sent the request, or to which the phone's user belongs; nil on routes that
    /// need no caller.
    var website: (id: WebsiteID, name: String)? {
        switch self {
        case .anyone: nil
        case .website(let website): (website.id, website.name)
        case .phone(let phone): (phone.website.id, phone.website.name)
        }
    }

    /// The website, for the answer to a held request of a website.
    var asWebsite: Website {
        get throws(Refusal) {
            guard case .website(let website) = self else { throw .unauthenticated }
            return website
        }
    }

    /// The phone, for the answer to a held request of a phone.
    var asPhone: PhoneCredential {
        get throws(Refusal) {
            guard case .phone(let phone) = self else { throw .unauthenticated }
            return phone
        }
    }

    /// The identity to look up again before a held request is answered. A proof is valid only once,
    /// so the phone's identity replaces it.
    func claim(after claim: PresentedIdentity) -> PresentedIdentity {
        guard case .phone(let phone) = self else { return claim }
        return .phone(phone.id, key: phone.key, isCertified: phone.isCertified)
    }
}

extension API {
    func caller(_ claim: PresentedIdentity, for form: Form, from remote: String) async throws(Refusal) -> Caller {
        switch (form.action, claim) {
        case (.anyone, _): return .anyone
        case (.website, .website(let name, let key, let certificate)):
            return .website(try await relay.website(named: name, key: key, certificate))
        case (.phone, .phone(let id, let key, let isCertified)):
            return .phone(try await relay.device(id, key: key, isCertified: isCertified))
        case (.phone, .key(let proof)): return .phone(try await relay.device(provedBy: proof, from: remote))
        default: throw .unauthenticated
        }
    }
}
