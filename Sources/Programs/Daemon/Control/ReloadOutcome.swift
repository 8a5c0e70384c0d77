import JSON

/// The outcome of a reload.
public enum ReloadOutcome: Sendable {
    /// The files and settings are in use, except those that need a restart.
    ///
    /// - Parameter changed: the settings and files that differ from those before.
    case reloaded(changed: [String], restart: [SettingForRestart])
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
