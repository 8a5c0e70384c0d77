/// A website's demands on the state of a phone, as far as its platform attests it.
///
/// A demand that the attestation says nothing about is not failed, but listed: App Attest says
/// nothing about the boot state and the screen lock. A demand is failed if the attested value
/// cannot be read.
public struct Posture: Sendable, Equatable {
    public enum Demand: String, Sendable, CaseIterable {
        case osVersion = "os_version"
        case patchLevel = "patch_level"
        case appVersion = "app_version"
        case bootState = "boot_state"
        case locked
        case screenLock = "screen_lock"
    }

    public struct Report: Sendable, Equatable {
        public var failed: [Demand]
        public var notAttested: [Demand]

        public init(failed: [Demand] = [], notAttested: [Demand] = []) {
            self.failed = failed
            self.notAttested = notAttested
        }
    }

    /// The minimum version of the operating system and of the app for a platform.
    public struct Minimum: Sendable, Equatable {
        public var osVersion: DottedVersion?
        /// On iOS the bundle version, on Android the version code.
        public var appVersion: DottedVersion?

        public init(osVersion: DottedVersion? = nil, appVersion: DottedVersion? = nil) {
            self.osVersion = osVersion
            self.appVersion = appVersion
        }
    }

    public var ios: Minimum
    public var android: Minimum
    /// The earliest month of security patches of Android, such as 202607.
    public var patchLevel: Int64?
    /// Whether the boot must be verified, and the boot loader locked: the phone is not rooted as
    /// far as its hardware can tell.
    public var verifiedBoot: Bool
    /// Whether the key must need a screen lock or biometric check for each signature. A key that
    /// signs for some time after a check does not meet the demand.
    public var screenLock: Bool

    public init(
        ios: Minimum = Minimum(), android: Minimum = Minimum(), patchLevel: Int64? = nil, verifiedBoot: Bool = false,
        screenLock: Bool = false
    ) {
        self.ios = ios
        self.android = android
        self.patchLevel = patchLevel
        self.verifiedBoot = verifiedBoot
        self.screenLock = screenLock
    }

    public func judge(_ device: AttestedDevice) -> Report {
        var report = Report()
        func require(_ demand: Demand, _ isMet: Bool?) {
            switch isMet {
            case true?: break
            case false?: report.failed.append(demand)
            case nil: report.notAttested.append(demand)
            }
        }
        let minimum = device.platform == .ios ? ios : android
        if let least = minimum.osVersion { require(.osVersion, device.osVersion?.isAtLeast(least)) }
        if let patchLevel, device.platform == .android {
            require(.patchLevel, device.patchLevel.map { $0 >= patchLevel })
        }
        if let least = minimum.appVersion {
            require(.appVersion, device.appVersion.map { DottedVersion($0)?.isAtLeast(least) ?? false })
        }
        if verifiedBoot {
            require(.bootState, device.boot.map { $0 == .verified })
            require(.locked, device.isLocked)
        }
        if screenLock { require(.screenLock, device.userAuthentication.map { $0 == .required }) }
        return report
    }
}
