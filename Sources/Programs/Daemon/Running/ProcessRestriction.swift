import Hardening
import JSON
import Log
import Metrics

extension Settings {
    /// Restricts this process as the setting `hardening` says. Must be called after all files are
    /// read, and before the process listens or starts a thread. Returns nil if hardening is off.
    ///
    /// - Parameter rules: the paths that the process may open; nil allows those that the daemon
    ///   needs.
    func restrictProcess(
        _ rules: LandlockRules? = nil, on kernel: some HardeningKernel = SystemKernel(), log: Log
    ) throws(Failure) -> Hardening? {
        try requireHardening(of: kernel)
        guard hardening != .off else {
            log.warning("hardening.off")
            return nil
        }
        let applied = Hardening.apply(rules ?? landlockRules, on: kernel)
        if hardening == .required, !applied.missing.isEmpty { throw Self.failure(applied.missing) }
        for measure in Hardening.Measure.allCases {
            guard let reason = applied.missing[measure] else { continue }
            log.warning("hardening.missing", [.name: measure.rawValue, .reason: reason])
        }
        let active = Hardening.Measure.allCases.filter { applied.missing[$0] == nil }
        if !active.isEmpty {
            log.notice("hardening.applied", [.name: active.map(\.rawValue).joined(separator: ",")])
        }
        return applied
    }

    /// Throws if hardening is `required` and the kernel lacks something. Changes nothing.
    func requireHardening(of kernel: some HardeningKernel = SystemKernel()) throws(Failure) {
        let missing = Hardening.missing(in: kernel)
        if hardening == .required, !missing.isEmpty { throw Self.failure(missing) }
    }

    /// Throws if hardening is `required` and this process lacks something.
    func requireHardening(_ applied: Hardening) throws(Failure) {
        if hardening == .required, !applied.missing.isEmpty { throw Self.failure(applied.missing) }
    }

    private static func failure(_ missing: [Hardening.Measure: String]) -> Failure {
        let reasons = missing.sorted { $0.key.rawValue < $1.key.rawValue }.map { "\($0.key.rawValue): \($0.value)" }
        return Failure(
            .failed, "hardening: required, and this system lacks\n\(reasons.joined(separator: "\n"))",
            next: "Use a kernel that has both, or set 'hardening: on' to start without them.")
    }

    /// The report of `--check`: the restrictions that a daemon started here would have.
    func hardeningReport(_ kernel: some HardeningKernel = SystemKernel()) -> (line: String, json: JSONValue) {
        let missing = Hardening.missing(in: kernel)
        var members = JSONObject()
        for measure in Hardening.Measure.allCases {
            members.set(measure.rawValue, .string(hardening == .off ? "off" : missing[measure] ?? "ok"))
        }
        let json = JSONValue.object(["level": .string(hardening.rawValue), "measures": .object(members)])
        if hardening == .off { return ("Hardening is off.", json) }
        let version = kernel.landlockVersion.map { ", Landlock's version is \($0)" } ?? ""
        let lacks = missing.values.sorted().joined(separator: "; ")
        return (
            missing.isEmpty
                ? "Hardening (\(hardening.rawValue)) is complete on this kernel\(version)."
                : "Hardening (\(hardening.rawValue)) is incomplete on this kernel: \(lacks).", json
        )
    }
}

extension Hardening {
    /// The missing measures in one line, for `/ready` and `twoefay status`; nil if everything is in
    /// force.
    var fault: String? {
        let reasons = Measure.allCases.compactMap { missing[$0] }
        return reasons.isEmpty ? nil : reasons.joined(separator: "; ")
    }

    /// Registers the gauge `twoefay_hardening_active`.
    ///
    /// - Parameter hardening: the restrictions in force; nil if hardening is off.
    static func show(_ hardening: Hardening?, in registry: Registry) {
        registry.gauges(
            "twoefay_hardening_active",
            "Whether a restriction of the relay process is in force, by measure: 1 if active, else 0.",
            by: "measure", Measure.allCases.map(\.rawValue)
        ) { name in
            Measure(rawValue: name).map { measure in hardening?.missing[measure] == nil && hardening != nil ? 1 : 0 }
        }
    }

    /// Refuses settings that name a file outside the directories that this process may open.
    ///
    /// - Parameter places: the positions of the settings in their file, to name the one at fault.
    func requireReach(of settings: Settings, named places: SettingsPositions = SettingsPositions()) throws(Failure) {
        guard let rules else { return }
        for opened in settings.openedPaths where !rules.allows(opened.path, opened.access) {
            // A path that does not exist is reported when it is read.
            guard Files.exists(opened.path) else { continue }
            throw Failure(
                .failed,
                "\(places.prefix(opened.path, settings))\(opened.path) needs a restart: hardening allows only the directories that were named at the start",
                next: "Restart the relay.")
        }
    }
}
