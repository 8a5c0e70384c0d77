import JSON

/// The outcome of a reload.
public enum ReloadOutcome: Sendable {
    /// The files and settings are in use, except those that need a restart.
    case reloaded(restart: [SettingForRestart])
    /// The relay has changed nothing.
    case refused(Failure)

    /// The status of the process for a service manager; nil if there is nothing to say.
    var status: String? {
        guard case .refused(let failure) = self else { return nil }
        return failure.reloadStatus
    }
}

extension SettingForRestart {
    public var json: JSONValue {
        .object(["setting": .string(name), "line": line.map { .integer(Int64($0)) } ?? .null])
    }
}
