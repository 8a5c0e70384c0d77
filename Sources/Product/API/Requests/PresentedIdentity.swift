import Domain
import HTTP
import Relay
import World

/// Who a certificate, or a proof in its place, says is calling. Whether that holds is looked up for every request.
enum PresentedIdentity: Sendable, Equatable {
    case nobody
    case website(name: String, key: [UInt8])
    /// By its certificate, or by what it has proved before.
    case phone(DeviceID, key: [UInt8], isCertified: Bool)
    /// Without a certificate: whoever holds this key, if the signature is right.
    case key(PresentedProof)
    case unproved(DPoP.Fault)
    /// A certificate of ours without exactly one name, or with one of the other authority's kind.
    case unusable

    /// A certificate counts, whatever else the request holds.
    init(_ request: Request, for route: Route, in api: API) {
        if let certificate = request.certificate {
            self.init(certificate)
        } else if route.isForPhones, request.fields[DPoP.field] != nil {
            do throws(DPoP.Fault) {
                self = .key(
                    try DPoP.read(
                        request, origin: api.settings.origin, nonces: api.relay.nonces, at: api.time.now()))
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
            guard let name = Self.name(in: uri, after: "twoefay:website:"), FieldRule.websiteName(name) == nil else {
                return
            }
            self = .website(name: name, key: certificate.keyThumbprint)
        case .phones:
            guard let name = Self.name(in: uri, after: "twoefay:device:"), let id = DeviceID(name) else { return }
            self = .phone(id, key: certificate.keyThumbprint, isCertified: true)
        }
    }

    /// By bytes: Swift's `hasPrefix` takes different spellings of a character for the same.
    private static func name(in uri: String, after prefix: String) -> String? {
        guard uri.utf8.starts(with: prefix.utf8) else { return nil }
        return String(uri.utf8.dropFirst(prefix.utf8.count))
    }
}

extension PresentedIdentity {
    /// The website's name, as its certificate has it.
    var website: String? {
        guard case .website(let name, _) = self else { return nil }
        return name
    }

    /// The caller that is charged for a request in work.
    func subject(from remote: String) -> QuotaUse.Subject {
        switch self {
        case .website(_, let key): .website(key: key)
        case .phone(let id, _, _): .phone(id)
        case .key(let proof): .presented(proof, from: remote)
        case .nobody, .unproved, .unusable: .stranger(remote)
        }
    }

    /// On whose behalf the store is asked who that is.
    func tenant(from remote: String) -> Tenant {
        switch self {
        case .website(_, let key): .key(key)
        case .phone(let id, _, _): .phone(id)
        // Anybody can make a key: it is the address that is known.
        case .nobody, .key, .unproved, .unusable: .anonymous(remote)
        }
    }
}

/// Who is calling, looked up.
enum Caller: Sendable {
    case anyone
    case website(Website)
    case phone(PhoneCredential)

    /// On whose behalf the request is answered; nil where that is as it was before the caller was looked up.
    var tenant: Tenant? { website.map { .website($0.id) } }

    /// The website whose request it is, or whose user the phone is; nil where nobody has to say.
    var website: (id: WebsiteID, name: String)? {
        switch self {
        case .anyone: nil
        case .website(let website): (website.id, website.name)
        case .phone(let phone): (phone.website.id, phone.website.name)
        }
    }

    /// What is looked up again before a held request is answered: a proof has done its service once.
    func claim(after claim: PresentedIdentity) -> PresentedIdentity {
        guard case .phone(let phone) = self else { return claim }
        return .phone(phone.id, key: phone.key, isCertified: phone.isCertified)
    }
}

extension API {
    func caller(_ claim: PresentedIdentity, for form: Form, from remote: String) async throws(Refusal) -> Caller {
        switch (form.action, claim) {
        case (.anyone, _): return .anyone
        case (.website, .website(let name, let key)): return .website(try await relay.website(named: name, key: key))
        case (.phone, .phone(let id, let key, let isCertified)):
            return .phone(try await relay.device(id, key: key, isCertified: isCertified))
        case (.phone, .key(let proof)): return .phone(try await relay.device(provedBy: proof, from: remote))
        default: throw .unauthenticated
        }
    }
}
