/// The place outside of the store to which a relay writes the heads of the audit.
public enum AuditHeadsTarget: SettingsValue {
    case file(FileName)
    case syslog(SyslogTarget)

    public init(settingsText text: String) throws(SettingsFault) {
        if text == "syslog" || text.hasPrefix("syslog:") {
            self = .syslog(try SyslogTarget(text.dropFirst("syslog:".count)))
        } else {
            self = .file(try FileName(settingsText: text))
        }
    }

    public var settingsText: String {
        switch self {
        case .file(let file): file.settingsText
        case .syslog(let target): target.settingsText
        }
    }
}

/// The syslog service of this machine.
public struct SyslogTarget: Sendable, Equatable {
    /// The facilities that programs of users may use, with their numbers (RFC 5424, section 6.2.1).
    private static let facilities =
        ["user": 1, "daemon": 3, "auth": 4, "syslog": 5, "authpriv": 10]
        .merging((0..<8).map { ("local\($0)", 16 + $0) }) { first, _ in first }
    private static let standard = (facility: "authpriv", socket: "/dev/log")

    let facility: String
    /// The number of the facility.
    let number: Int
    /// The absolute path of the service's datagram socket.
    let socket: String

    /// Reads `FACILITY`, `FACILITY@SOCKET`, or nothing.
    fileprivate init(_ text: Substring) throws(SettingsFault) {
        let parts = text.split(separator: "@", maxSplits: 1, omittingEmptySubsequences: false)
        let name = parts.first.map(String.init) ?? ""
        facility = name.isEmpty && parts.count < 2 ? Self.standard.facility : name
        guard let number = Self.facilities[facility] else {
            throw SettingsFault(
                "must name a facility after syslog: such as authpriv, auth, daemon, user, or local0 to local7")
        }
        self.number = number
        socket = parts.count < 2 ? Self.standard.socket : String(parts[1])
        guard socket.hasPrefix("/"), !socket.utf8.contains(0), socket.utf8.count <= 107 else {
            throw SettingsFault("must have an absolute path of at most 107 bytes after @, such as /dev/log")
        }
    }

    fileprivate var settingsText: String {
        socket == Self.standard.socket ? "syslog:\(facility)" : "syslog:\(facility)@\(socket)"
    }
}
