import Attestation
import Log
import Metrics
import Synchronization
import World

/// The state of the revocation list, for `/ready` and the metrics.
///
/// A list that cannot be read stops neither the start nor a reload, because it concerns only phones
/// with Android. The relay goes on with the list that it has, if it has one, until that is too old.
final class AttestationHealth: Sendable {
    private struct State {
        var files: AttestationFiles
        /// Whether the settings name the list or an app for Android.
        var isNeeded: Bool
    }

    private let state: Mutex<State>
    private let time: any TimeSource
    private let log: Log

    init(_ settings: Settings, _ files: AttestationFiles, time: any TimeSource, log: Log, _ registry: Registry) {
        state = Mutex(State(files: files, isNeeded: settings.attestations.needsList))
        self.time = time
        self.log = log
        registry.duration(
            "twoefay_attestation_revocations_age_seconds",
            "Age of the revocation list for Android, in seconds; left out without one."
        ) { [self] in age }
        warn(of: files)
    }

    /// Takes over what a reload has read.
    ///
    /// - Returns: the judge for the relay. It keeps the former list if the new one cannot be read.
    func replace(_ settings: Settings, _ files: AttestationFiles) -> AttestationVerifier {
        warn(of: files)
        return state.withLock { state in
            var files = files
            if files.problem != nil, let former = state.files.verifier.revocationList {
                files.verifier = files.verifier.with(former)
            }
            state = State(files: files, isNeeded: settings.attestations.needsList)
            return files.verifier
        }
    }

    private func warn(of files: AttestationFiles) {
        if let problem = files.problem { log.warning("attestation.list", [.reason: problem]) }
    }

    private var age: Duration? {
        state.withLock { $0.files.verifier.revocationList }.map { time.now() - $0.fetchedAt }
    }

    var isNeeded: Bool { state.withLock { $0.isNeeded } }

    /// The reason why no list counts, or why the present one is not the newest; nil if all is well.
    var fault: String? {
        let files = state.withLock { $0.files }
        if let problem = files.problem { return problem }
        guard let list = files.verifier.revocationList else {
            return "attestation.revocations is not set, so no phone with Android has a valid attestation"
        }
        guard !files.verifier.isFresh(list.fetchedAt, at: time.now()) else { return nil }
        return "the revocation list of \(list.fetchedAt.rfc3339) is too old, or dated in the future: fetch it again"
    }
}

extension Settings.AttestationSettings {
    /// Whether phones with Android can be attested, or are meant to.
    fileprivate var needsList: Bool { revocations != nil || androidApps != nil }
}
