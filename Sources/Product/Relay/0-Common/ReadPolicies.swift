import Domain
import Synchronization

/// The policy of the installation, and the policies that stored texts make of it.
///
/// Purpose: each request of a website or a phone reads a policy that is stored as a JSON text. Most
/// of them have the same few texts, so each text is parsed once.
///
/// Invariant: a policy depends on its text and the installation's policy alone. The texts themselves
/// come from the store with every request, so a change there takes effect at once. A new policy of
/// the installation forgets all that was read with the former one.
///
/// Failures: a text with a fault is parsed each time, so its fault is reported each time. Websites
/// could write ever new texts; the memory for them is bounded.
///
/// Tested in `ReadPoliciesTests.swift`.
final class ReadPolicies: Sendable {
    private struct State {
        var installation: Policy
        var read = GenerationalCache<String, Policy>(most: ReadPolicies.most)
    }

    /// The most texts that are kept. A website has one, and a challenge may narrow it.
    private static let most = 1024
    /// The longest text that is kept, in bytes, so that the memory is bounded.
    private static let longest = 4096

    private let state: Mutex<State>

    init(_ installation: Policy) { state = Mutex(State(installation: installation)) }

    /// The policy of websites that set nothing else.
    var installation: Policy { state.withLock { $0.installation } }

    /// Uses another policy of the installation from now on.
    func replace(_ installation: Policy) { state.withLock { $0 = State(installation: installation) } }

    /// Returns the installation's policy with the changes of a stored text.
    ///
    /// - Parameter note: is called with the fault of a value that is read as none.
    func policy(
        changedBy text: String, noting note: (Policy.Fault) -> Void = { _ in }
    ) throws(Policy.Fault) -> Policy {
        let (kept, base) = state.withLock { ($0.read[text], $0.installation) }
        if let kept { return kept }
        var hasFault = false
        let policy = try base.changed(by: text) { fault in
            hasFault = true
            note(fault)
        }
        if !hasFault, text.utf8.count <= Self.longest {
            state.withLock { state in
                // The installation's policy may have been replaced meanwhile.
                if state.installation == base { state.read[text] = policy }
            }
        }
        return policy
    }
}
