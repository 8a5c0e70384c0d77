/// The data that the relay stores about the phone itself.
extension Phone {
    /// Sends the device token that the push service assigned: iOS may assign another one at any
    /// start of the app. Nothing is sent if it is the same.
    ///
    /// - Parameter token: the APNs device token in hexadecimal; nil if the person no longer allows
    ///   notifications. The phone polls then.
    public func use(pushToken token: String?) async throws(PhoneError) {
        guard token != enrolment.pushToken else { return }
        let claims = Statement.pushToken(token ?? "", for: enrolment.audience, at: now)
        let body: JSONObject = ["dev_token": .string(try sign("twoefay-token+jwt", claims))]
        try await sendUntilAnswered(RelayRequest("POST", "/device", body), within: 30_000).accepted()
        try change { $0.pushToken = token }
    }

    public func rename(_ name: String) async throws(PhoneError) {
        try await sendUntilAnswered(RelayRequest("POST", "/device", ["name": .string(name)]), within: 30_000).accepted()
        try change { $0.name = name }
    }

    /// Reports the state of the phone: after it was bound, at each start of the app, and when a
    /// value changes.
    public func report(_ status: PhoneStatus) async throws(PhoneError) {
        guard let kept = try await report(status, after: nil) else { return }
        // The relay has a later report: the clock was ahead, or it is of the same second.
        _ = try await report(status, after: kept)
    }

    /// - Returns: the time of the report that the relay has, if it is another one.
    private func report(_ status: PhoneStatus, after kept: Timestamp?) async throws(PhoneError) -> Timestamp? {
        var time = now
        let answer = try await send { () throws(PhoneError) in
            time = kept.map { Timestamp(seconds: $0.seconds + 1) } ?? now
            let claims = Statement.status(status, for: enrolment.audience, at: time)
            let body: JSONObject = ["status": .string(try sign("twoefay-status+jwt", claims))]
            return RelayRequest("POST", "/device/status", body)
        }
        guard let report = try answer.accepted()["report"]?.object,
            let reported = report["reported_at"]?.string.flatMap({ Timestamp(rfc3339: $0) })
        else { throw .odd("report is missing") }
        let isOwn = reported.seconds == time.seconds && status.claims.members.allSatisfy { report[$0.name] == $0.value }
        return isOwn ? nil : reported
    }
}

/// The state of the phone. What the app does not know stays nil.
public struct PhoneStatus: Sendable, Equatable {
    public var os: String?
    public var osVersion: String?
    /// The month of Android's security patches, such as 202610.
    public var patchLevel: Int64?
    public var appVersion: String?
    public var model: String?
    /// The charge in percent.
    public var battery: Int64?
    public var hasScreenLock: Bool?
    /// Whether the app thinks that the phone is jailbroken.
    public var isRooted: Bool?

    public init() {}

    var claims: JSONObject {
        var claims = JSONObject()
        claims["os"] = os.map { .string($0) }
        claims["os_version"] = osVersion.map { .string($0) }
        claims["patch_level"] = patchLevel.map { .integer($0) }
        claims["app_version"] = appVersion.map { .string($0) }
        claims["model"] = model.map { .string($0) }
        claims["battery"] = battery.map { .integer($0) }
        claims["screen_lock"] = hasScreenLock.map { .bool($0) }
        claims["rooted"] = isRooted.map { .bool($0) }
        return claims
    }
}
