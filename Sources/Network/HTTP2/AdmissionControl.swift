import EventLoop
import HTTP
import Log
import Synchronization
import World

/// The admission of connections to all servers of a process: one `AdmissionTable` for all loops,
/// under one lock.
///
/// A call holds the lock for some microseconds. It ends connections afterwards, on their own loops,
/// so a slow loop never holds the lock. Each connection holds an `AdmissionTicket` until it is
/// closed. Slots are reused; so a call with a released ticket must have no effect, which
/// `State.holds` checks. Tests: `AdmissionServerTests`.
public final class AdmissionControl: Sendable {
    private struct State {
        var table: AdmissionTable
        var tickets: [AdmissionTicket?] = []
        var reasons: [AdmissionTable.Reason: UInt64] = [:]
        var bursts: [AdmissionTable.Reason: LogThrottle] = [:]

        /// Whether the ticket still owns its slot: false after its release, also if another
        /// connection has the slot by now.
        func holds(_ ticket: AdmissionTicket) -> Bool { tickets[ticket.slot] === ticket }
    }

    /// The kinds of open connections, for the metrics.
    public enum Kind: String, CaseIterable, Sendable { case unidentified, phone, website, introducing, closing }

    private let state: Mutex<State>
    private let time: any TimeSource
    private let log: Log

    public init(_ limits: AdmissionLimits, time: any TimeSource, log: Log) {
        self.time = time
        self.log = log
        state = Mutex(State(table: AdmissionTable(limits)))
    }

    /// The values of the `reason` label.
    public static var reasons: [String] { AdmissionTable.Reason.allCases.map(\.rawValue) }

    /// The number of connections that were refused, put off, ended or kept unidentified for this
    /// reason.
    public func count(reason: String) -> UInt64 {
        guard let reason = AdmissionTable.Reason(rawValue: reason) else { return 0 }
        return state.withLock { $0.reasons[reason] ?? 0 }
    }

    public func open(_ kind: Kind) -> Int {
        let counts = state.withLock { $0.table.counts }
        return switch kind {
        case .unidentified: counts.unidentified
        case .phone: counts.phones
        case .website: counts.websites
        case .introducing: counts.introducing
        case .closing: counts.closing
        }
    }

    /// Uses these limits from now on. Connections beyond a lower limit stay until they end, or make
    /// room for new ones.
    public func replace(_ limits: AdmissionLimits) {
        change { state, now, _ in state.table.replace(limits, at: now) }
    }

    /// Admits an accepted connection, and ends others to make room for it.
    /// - Parameter address: nil if a balancer has not yet sent the address of the caller.
    /// - Returns: nil if the connection must be closed at once.
    func admit(_ address: SocketAddress?, on loop: EventLoop) -> AdmissionTicket? {
        let source = address.map { Source($0) }
        let remote = address?.host
        let ticket = AdmissionTicket(self, loop: loop, source, remote)
        return change { state, now, notes in
            switch state.table.admit(source, at: now) {
            case .refused(let reason):
                notes.add(reason, remote, in: &state, now)
                return nil
            case .admitted(let slot, let ended):
                ticket.slot = slot
                if slot == state.tickets.count { state.tickets.append(ticket) } else { state.tickets[slot] = ticket }
                notes.end(ended, in: &state, now)
                return ticket
            }
        }
    }

    /// Ends the connections that are overdue. The timer of any server calls it for all servers.
    func sweep() {
        change { state, now, notes in notes.end(state.table.overdue(at: now), in: &state, now) }
    }

    fileprivate func proxyHeaderRead(_ ticket: AdmissionTicket, as source: Source, _ remote: String) -> Bool {
        change { state, now, notes in
            guard state.holds(ticket) else { return false }
            switch state.table.proxyHeaderRead(ticket.slot, as: source, at: now) {
            case .refused(let reason):
                notes.add(reason, remote, in: &state, now)
                return false
            case .admitted(_, let ended):
                notes.end(ended, in: &state, now)
                return true
            }
        }
    }

    fileprivate func takeHandshake(_ ticket: AdmissionTicket) -> HandshakeDecision {
        change { state, now, _ in
            state.holds(ticket) ? state.table.takeHandshake(ticket.slot, at: now) : .drop
        }
    }

    fileprivate func putOff(_ count: Int, _ remote: String?) {
        change { state, now, notes in notes.add(.handshakes, remote, count, in: &state, now) }
    }

    fileprivate func requested(_ ticket: AdmissionTicket) {
        change { state, now, _ in
            if state.holds(ticket) { state.table.requested(ticket.slot, at: now) }
        }
    }

    /// Counts the connection under its identity, if the share of its kind has room.
    /// - Returns: whether the connection is identified from now on.
    fileprivate func identified(
        _ ticket: AdmissionTicket, as identity: AdmissionTable.Identity, _ remote: String?
    ) -> Bool {
        change { state, now, notes in
            guard state.holds(ticket) else { return false }
            let (ended, kept) = state.table.identified(ticket.slot, as: identity)
            if let kept { notes.add(kept, remote, in: &state, now) }
            notes.end(ended, in: &state, now)
            return kept == nil
        }
    }

    fileprivate func release(_ ticket: AdmissionTicket) {
        change { state, _, _ in
            guard state.holds(ticket) else { return }
            state.tickets[ticket.slot] = nil
            state.table.release(ticket.slot)
        }
    }

    /// The effects of a change of the table: they happen after the lock is released.
    private struct Effects {
        var ended: [(ticket: AdmissionTicket, reason: AdmissionTable.Reason)] = []
        var lines: [(reason: AdmissionTable.Reason, remote: String?, count: Int)] = []

        mutating func add(
            _ reason: AdmissionTable.Reason, _ remote: String?, _ events: Int = 1, in state: inout State, _ now: Instant
        ) {
            state.reasons[reason, default: 0] += UInt64(events)
            // Connections without any request are common. A flood of them shows in the other
            // reasons.
            guard reason != .request, reason != .lifetime else { return }
            guard let count = state.bursts[reason, default: LogThrottle()].record(events, at: now) else { return }
            lines.append((reason, remote, count))
        }

        mutating func end(_ all: [AdmissionTable.Ended], in state: inout State, _ now: Instant) {
            for one in all {
                guard let ticket = state.tickets[one.slot] else { continue }
                add(one.reason, ticket.remote, in: &state, now)
                ended.append((ticket, one.reason))
            }
        }
    }

    private func change<Value>(_ body: (inout State, Instant, inout Effects) -> Value) -> Value {
        let now = time.instant()
        var notes = Effects()
        let value = state.withLock { body(&$0, now, &notes) }
        for line in notes.lines {
            log.warning(
                "connection.limited", [.reason: line.reason.rawValue, .remote: line.remote, .count: line.count])
        }
        for (ticket, reason) in notes.ended { ticket.end(reason) }
        return value
    }
}

/// The admission of one connection: its slot in the table, from `admit` to `release`.
final class AdmissionTicket: CallerIdentification, Sendable {
    private struct Place: Sendable {
        var source: Source?
        var remote: String?
        var end: (@Sendable (AdmissionTable.Reason) -> Void)?
        /// Set if the ticket was ended before the connection called `onEnd`.
        var reason: AdmissionTable.Reason?
    }

    /// Index of its slot in the table. Set at admission; read and written under the lock of
    /// `control`.
    fileprivate var slot: Int {
        get { slotNumber.load(ordering: .relaxed) }
        set { slotNumber.store(newValue, ordering: .relaxed) }
    }
    /// The source of the connection; nil until the balancer has named it.
    var source: Source? { place.withLock { $0.source } }
    private let control: AdmissionControl
    private let loop: EventLoop
    private let place: Mutex<Place>
    private let slotNumber = Atomic(-1)
    /// Whether the connection is identified, which never changes back. Later proofs on it need no
    /// lock.
    private let isIdentified = Atomic(false)

    fileprivate init(_ control: AdmissionControl, loop: EventLoop, _ source: Source?, _ remote: String?) {
        self.control = control
        self.loop = loop
        place = Mutex(Place(source: source, remote: remote))
    }

    fileprivate var remote: String? { place.withLock { $0.remote } }

    /// `end` is called on the ticket's loop when the connection has to end.
    func onEnd(_ end: @escaping @Sendable (AdmissionTable.Reason) -> Void) {
        let reason = place.withLock { place in
            place.end = end
            return place.reason
        }
        if let reason { loop.post { end(reason) } }
    }

    /// Records the address from the PROXY header. Returns false if the connection must end, because
    /// there is no slot for it.
    func proxyHeaderRead(as address: SocketAddress) -> Bool {
        let (source, remote) = (Source(address), address.host)
        place.withLock { place in
            place.source = source
            place.remote = remote
        }
        return control.proxyHeaderRead(self, as: source, remote)
    }

    func takeHandshake() -> HandshakeDecision { control.takeHandshake(self) }

    /// Reports that `count` connections of this source, this one included, are put off for the
    /// first time.
    func putOff(_ count: Int) {
        if count > 0 { control.putOff(count, remote) }
    }

    func requested() { control.requested(self) }
    func isPhone(_ key: [UInt8]) { identify(as: .phone(key)) }
    func isWebsite(_ key: [UInt8]) { identify(as: .website(key)) }

    private func identify(as identity: AdmissionTable.Identity) {
        guard !isIdentified.load(ordering: .relaxed) else { return }
        if control.identified(self, as: identity, remote) { isIdentified.store(true, ordering: .relaxed) }
    }

    /// Returns the slot, because the connection is closed.
    func release() {
        control.release(self)
        place.withLock { $0.end = nil }
    }

    fileprivate func end(_ reason: AdmissionTable.Reason) {
        let end = place.withLock { place in
            place.reason = reason
            return place.end
        }
        guard let end else { return }
        if loop.isCurrent { end(reason) } else { loop.post { end(reason) } }
    }
}
