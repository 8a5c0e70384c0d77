import Crypto
import World

/// The weight that is given to attestations.
public enum AttestationRequirement: String, Sendable, CaseIterable {
    /// Attestations do not count, and nothing is recorded.
    case none
    /// The result is recorded, and no fault keeps a phone out.
    case recorded
    /// A phone without a faultless attestation can neither be bound nor approve.
    case required
}

/// The requirement for each platform.
///
/// A phone names its platform itself. If the name alone selected the requirement, every phone could
/// choose the weaker one. So the requirement of a platform is for phones whose genuine attestation
/// proves that platform, and the stricter one is for all others, also for browsers.
public struct AttestationRequirements: Sendable, Equatable {
    public var ios: AttestationRequirement
    public var android: AttestationRequirement

    public init(ios: AttestationRequirement, android: AttestationRequirement) {
        self.ios = ios
        self.android = android
    }

    public static func all(_ requirement: AttestationRequirement) -> AttestationRequirements {
        AttestationRequirements(ios: requirement, android: requirement)
    }

    /// The requirement for a phone that proved its platform.
    public func requirement(for platform: AttestedDevice.Platform) -> AttestationRequirement {
        switch platform {
        case .ios: ios
        case .android: android
        }
    }

    /// The requirement for a phone that did not prove its platform.
    public var strictest: AttestationRequirement {
        let strictestFirst: [AttestationRequirement] = [.required, .recorded]
        return strictestFirst.first { $0 == ios || $0 == android } ?? .none
    }
}

/// The result of judging one attestation.
public struct AttestationOutcome: Sendable, Equatable {
    /// The requirement that applied to the phone.
    public let requirement: AttestationRequirement
    /// The attested facts; nil if the attestation is not genuine, or does not count.
    public let device: AttestedDevice?
    /// Empty if the attestation has no fault, or does not count.
    public let faults: [AttestationFault]

    /// Whether the phone can be bound.
    public var admits: Bool { requirement != .required || (device != nil && faults.isEmpty) }
}

/// Judges attestations by the requirements that the caller passes. It is pure: the time, the roots
/// and the revocation list are given.
///
/// Two kinds of faults exist. If the attestation is not genuine, or is for another enrolment or
/// app, `verify` throws, and no fact of it counts. `weaknesses` names what is wrong with a genuine
/// one.
///
/// Tests: `AttestationVerifierTests`.
public struct AttestationVerifier: Sendable {
    public let roots: AttestationRoots
    /// The accepted App IDs, `TEAM.bundle`.
    public let appleApps: [String]
    public let androidApps: [AndroidApp]
    /// Google's list; nil if the operator has none.
    public let revocationList: RevocationList?
    public let maxListAge: Duration
    /// The difference that the clock of the list's file may have to ours.
    private static let maxListLead: Duration = .seconds(600)
    /// Whether apps that were signed for development are accepted, for tests of an app.
    public let acceptsDevelopment: Bool

    public init(
        roots: AttestationRoots, appleApps: [String] = [], androidApps: [AndroidApp] = [],
        revocationList: RevocationList? = nil, maxListAge: Duration = .seconds(7 * 86_400),
        acceptsDevelopment: Bool = false
    ) {
        self.roots = roots
        self.appleApps = appleApps
        self.androidApps = androidApps
        self.revocationList = revocationList
        self.maxListAge = maxListAge
        self.acceptsDevelopment = acceptsDevelopment
    }

    /// Verifies that the attestation is genuine, and for this enrolment and one of the apps.
    public func verify(
        _ statement: AttestationStatement, for subject: AttestationSubject, at now: Timestamp
    ) throws(AttestationFault) -> AttestedDevice {
        switch statement {
        case .apple(let keyID, let object):
            try AppAttestation.verify(
                object, keyID: keyID, clientDataHash: SHA256.hash(AttestationChallenge.clientData(subject)),
                apps: appleApps, roots: roots.apple, at: now)
        case .android(let chain):
            try AndroidAttestation.verify(
                chain, key: subject.key, challenge: AttestationChallenge.android(subject), apps: androidApps,
                roots: roots.android, revocationList: revocationList, at: now)
        }
    }

    /// Names what keeps a genuine attestation from being trusted.
    ///
    /// Without verified boot and a locked boot loader, the owner of a phone with Android decides
    /// what the operating system says about the app.
    public func weaknesses(of device: AttestedDevice, at now: Timestamp) -> [AttestationFault] {
        var faults: [AttestationFault] = []
        if device.environment == .development, !acceptsDevelopment { faults.append(.development) }
        guard device.platform == .android else { return faults }
        if device.boot != .verified { faults.append(.bootState) }
        if device.isLocked != true { faults.append(.unlocked) }
        switch device.revocationList {
        case nil: faults.append(.revocationListMissing)
        case let fetchedAt?: if !isFresh(fetchedAt, at: now) { faults.append(.revocationListStale) }
        }
        return faults
    }

    /// Whether a list of this time counts.
    ///
    /// A list that was fetched while the clock was ahead would never become old, so a time in the
    /// future is no proof of a fresh list.
    public func isFresh(_ fetchedAt: Timestamp, at now: Timestamp) -> Bool {
        now - fetchedAt <= maxListAge && fetchedAt - now <= Self.maxListLead
    }

    /// Judges what a phone sent at its enrolment; nil if it sent nothing.
    public func judge(
        _ statement: AttestationStatement?, for subject: AttestationSubject, requirements: AttestationRequirements,
        at now: Timestamp
    ) -> AttestationOutcome {
        let strictest = requirements.strictest
        guard strictest != .none else { return AttestationOutcome(requirement: .none, device: nil, faults: []) }
        guard let statement else {
            return AttestationOutcome(requirement: strictest, device: nil, faults: [.missing])
        }
        do {
            let device = try verify(statement, for: subject, at: now)
            let requirement = requirements.requirement(for: device.platform)
            // The phone has proved its platform, which counts later.
            guard requirement != .none else {
                return AttestationOutcome(requirement: .none, device: device, faults: [])
            }
            return AttestationOutcome(
                requirement: requirement, device: device, faults: weaknesses(of: device, at: now))
        } catch {
            return AttestationOutcome(requirement: strictest, device: nil, faults: [error])
        }
    }
}
