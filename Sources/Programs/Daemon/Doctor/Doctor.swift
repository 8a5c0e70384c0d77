import World

/// The examination of an installation: `twoefay doctor`.
///
/// Each check measures one thing and says in one line what it found, and what to do. It changes
/// nothing: it sends no message and no password, and leaves no value in the store. It works
/// without a relay that runs, and judges what its user may read.
///
/// `DoctorTests.swift` tests it, `DoctorCommandTests.swift` the command.
public struct Doctor: Sendable {
    let file: SettingsOfFile
    /// The path of the settings file.
    let path: String
    var facts = HostFacts.system

    init(_ file: SettingsOfFile, path: String, facts: HostFacts = .system) {
        self.file = file
        self.path = path
        self.facts = facts
    }

    /// Reads the settings that `--config` names, or the environment.
    public init(_ invocation: Invocation) throws(Failure) {
        self.init(try Settings.loadWithPlaces(invocation), path: Settings.file(invocation) ?? "")
    }

    public func examine(offline: Bool, progress: ProgressLines? = nil) -> [Finding] {
        let settings = file.settings
        let checks =
            SettingsChecks(settings: settings, path: path, places: file.places, facts: facts).all
            + HeadsCheck(settings: settings, facts: facts).all
            + MachineChecks(settings: settings, facts: facts).all + StoreChecks(settings: settings, facts: facts).all
            + ReachChecks(settings: settings, facts: facts).all
        return Examination.run(checks, offline: offline, time: facts.time, progress: progress)
    }
}
