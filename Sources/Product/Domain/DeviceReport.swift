import World

/// The report of a phone about itself, as stored in `device_report`.
///
/// Only the phone's software says so. A report is a hint for websites and operators, and proves
/// nothing: see the threat model. A property is nil if the phone does not report it.
public struct DeviceReport: Sendable, Equatable {
    /// The operating system, such as `iOS`.
    public var os: String?
    /// The version of the operating system, such as `26.1`.
    public var osVersion: String?
    /// The year and month of Android's security patches, such as 202610.
    public var patchLevel: Int?
    public var appVersion: String?
    /// The model of the phone, in the words of its maker.
    public var model: String?
    /// The charge of the battery in percent.
    public var battery: Int?
    /// Whether the phone has a screen lock.
    public var hasScreenLock: Bool?
    /// Whether the app thinks that the phone is rooted.
    public var isRooted: Bool?
    /// The time of the report by the phone's clock. Only a later report replaces this one.
    public let reportedAt: Timestamp
    /// The time at which a relay received the report.
    public let receivedAt: Timestamp

    public init(reportedAt: Timestamp, receivedAt: Timestamp) {
        self.reportedAt = reportedAt
        self.receivedAt = receivedAt
    }
}

/// The limits of the values of a report. The lengths are those of the database columns.
public enum DeviceReportLimits {
    public static let word = 32
    public static let model = 64
    public static let battery = 0...100
    /// Years and months, such as 202610.
    public static let patchLevel = 200_001...999_912
}
