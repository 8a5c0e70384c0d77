import Crypto
import JSON
import World

/// The report of a phone about itself. A property that is nil is not reported.
public struct PhoneStatus: Sendable, Equatable {
    /// The operating system, such as `iOS`.
    public var os: String?
    public var osVersion: String?
    /// The year and month of Android's security patches, such as 202610.
    public var patchLevel: Int64?
    public var appVersion: String?
    public var model: String?
    /// The charge of the battery in percent.
    public var battery: Int64?
    public var hasScreenLock: Bool?
    /// Whether the app thinks that the phone is rooted.
    public var isRooted: Bool?

    public init() {}

    /// The claims, in the order of the page of the protocol.
    var claims: JSONObject {
        var claims = JSONObject()
        claims.set("os", os.map { .string($0) })
        claims.set("os_version", osVersion.map { .string($0) })
        claims.set("patch_level", patchLevel.map { .integer($0) })
        claims.set("app_version", appVersion.map { .string($0) })
        claims.set("model", model.map { .string($0) })
        claims.set("battery", battery.map { .integer($0) })
        claims.set("screen_lock", hasScreenLock.map { .bool($0) })
        claims.set("rooted", isRooted.map { .bool($0) })
        return claims
    }

    /// The status that the relay has stored for a phone.
    public struct Stored: Sendable, Equatable {
        public let status: PhoneStatus
        /// The time of the report by the phone's clock.
        public let reportedAt: Timestamp
        /// The time of the report by the relay's clock.
        public let receivedAt: Timestamp

        init(_ answer: RelayAnswer) throws(CallFailure) {
            guard let report = try answer.accepted()["report"]?.object,
                let reportedAt = report["reported_at"]?.string.flatMap({ Timestamp(rfc3339: $0) }),
                let receivedAt = report["received_at"]?.string.flatMap({ Timestamp(rfc3339: $0) })
            else { throw answer.odd("without a report") }
            var status = PhoneStatus()
            status.os = report["os"]?.string
            status.osVersion = report["os_version"]?.string
            status.patchLevel = report["patch_level"]?.integer
            status.appVersion = report["app_version"]?.string
            status.model = report["model"]?.string
            status.battery = report["battery"]?.integer
            status.hasScreenLock = report["screen_lock"]?.bool
            status.isRooted = report["rooted"]?.bool
            self.status = status
            self.reportedAt = reportedAt
            self.receivedAt = receivedAt
        }
    }
}

extension Responder {
    /// Reports the phone's status to the relay. The relay keeps the report with the latest time. If
    /// that is another one, because the clock was ahead or because this is the second report of one
    /// second, the phone reports once more with the second after it.
    ///
    /// - Returns: the report that the relay has stored.
    public func report(_ status: PhoneStatus) async throws(CallFailure) -> PhoneStatus.Stored {
        let now = line.clock.now()
        let stored = try await report(status, at: now)
        let isOfSameSecond = stored.reportedAt.seconds == now.seconds && stored.status != status
        guard isOfSameSecond || stored.reportedAt.seconds > now.seconds else { return stored }
        return try await report(status, at: stored.reportedAt + .seconds(1))
    }

    private func report(_ status: PhoneStatus, at now: Timestamp) async throws(CallFailure) -> PhoneStatus.Stored {
        let statement: String
        do {
            statement = try SignedStatement.status(status, of: enrolment, device: device, at: now)
        } catch {
            throw .unable(error.description)
        }
        return try PhoneStatus.Stored(try await send(.init("/device/status", body: ["status": .string(statement)])))
    }
}
