import Bytes
import Crypto
import JSON
import World

extension AttestedDevice {
    /// Reads the facts that `json` wrote; nil if they are not in that form. The key of App Attest
    /// is not among them.
    public init?(facts: JSONObject, appAttest: AppAttestKey? = nil) {
        guard let platform = facts["platform"]?.string.flatMap({ Platform(rawValue: $0) }),
            let hardware = facts["hardware"]?.string.flatMap({ Hardware(rawValue: $0) }),
            let app = facts["app"]?.string, let root = facts["root"]?.string.flatMap({ Base64URL.decode($0) })
        else { return nil }
        self.init(platform: platform, hardware: hardware, app: app, root: root)
        appVersion = facts["app_version"]?.string
        environment = facts["environment"]?.string.flatMap { Environment(rawValue: $0) }
        osVersion = facts["os_version"]?.string.flatMap { DottedVersion($0) }
        patchLevel = facts["patch_level"]?.integer
        boot = facts["boot_state"]?.string.flatMap { BootState(rawValue: $0) }
        isLocked = facts["locked"]?.bool
        userAuthentication = facts["user_authentication"]?.string.flatMap { UserAuthentication(rawValue: $0) }
        self.appAttest = appAttest
    }
}

extension AttestationVerifier {
    /// A verifier that trusts no root and accepts no app.
    public static let trustingNobody = AttestationVerifier(roots: AttestationRoots(apple: [], android: []))

    /// Judges what a phone sent at its enrolment, before its form is known; nil if it sent nothing.
    public func judge(
        json: JSONValue?, for subject: AttestationSubject, requirements: AttestationRequirements, at now: Timestamp
    ) -> AttestationOutcome {
        do {
            let statement = try json.map { json throws(AttestationFault) in try AttestationStatement(json: json) }
            return judge(statement, for: subject, requirements: requirements, at: now)
        } catch {
            let requirement = requirements.strictest
            return AttestationOutcome(
                requirement: requirement, device: nil, faults: requirement == .none ? [] : [error])
        }
    }

    /// Whether a certificate of an attestation is on the revocation list, which may be newer than
    /// the attestation. It is false without a list, and for App Attest.
    public func isRevoked(_ statement: AttestationStatement) -> Bool {
        guard let revocationList, case .android(let chain) = statement else { return false }
        return chain.contains { der in
            guard let certificate = try? Certificate(der: der) else { return true }
            return revocationList.contains(certificate)
        }
    }
}

extension Posture {
    public var isEmpty: Bool { self == Posture() }

    /// The demands on a phone of this platform; nil for platforms without attestations, which have
    /// no minimum versions.
    public func demands(on platform: AttestedDevice.Platform?) -> [Demand] {
        let minimum =
            switch platform {
            case .ios: ios
            case .android: android
            case nil: Minimum()
            }
        var demands: [Demand] = []
        if minimum.osVersion != nil { demands.append(.osVersion) }
        if patchLevel != nil, platform == .android { demands.append(.patchLevel) }
        if minimum.appVersion != nil { demands.append(.appVersion) }
        if verifiedBoot { demands += [.bootState, .locked] }
        if screenLock { demands.append(.screenLock) }
        return demands
    }
}
