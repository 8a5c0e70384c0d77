import World

/// The state machine that decides which connections may exist. It has no socket, no timer and no
/// clock: every call passes the time, and returns the connections that must end.
///
/// Purpose: a flood of unidentified connections must not take connections from websites and
/// identified phones. Invariants: no kind of caller has more connections than its share
/// (`AdmissionLimits`), and the shares add up to the total.
///
/// A new connection is unidentified, because its certificate or proof comes later. It is never
/// refused because the share is full. Instead, the table ends an older unidentified connection: of
/// the same source if that source is at its limit, otherwise of the source with the most
/// connections. So every new caller has some time to identify itself, whatever the others do. That
/// time depends on how many newer connections arrive. A connection's first request makes it the
/// newest of its source again.
///
/// Risk: a loop is slower to close connections than the table is to end them. Then new connections
/// are refused, with the reason `closing`. Tests: `AdmissionTableTests`, and with real servers
/// `AdmissionServerTests`.
struct AdmissionTable {
    /// The reason why a connection was refused, put off or ended, or stayed unidentified.
    enum Reason: String, CaseIterable, Sendable {
        /// Refused: more connections wait to be closed than the loops can close.
        case closing
        /// Put off: the handshake waits until the budget of its source allows it.
        case handshakes
        /// Ended for a newer connection of the same source.
        case source
        /// Ended for a connection of another source: the share of unidentified connections is full.
        case unidentified
        /// Ended for a newer connection: the share of balancers' connections without a PROXY header
        /// is full.
        case introduction
        /// Ended for a newer connection of the same phone.
        case phone
        /// Stays unidentified: the share of phones, or of websites, is full.
        case phones, websites
        /// Ended: no request came in time.
        case request
        /// Ended: it reached its maximum age without identifying itself.
        case lifetime
    }

    enum Identity: Hashable, Sendable {
        /// A caller, named by the SHA-256 of its key.
        case phone([UInt8])
        case website([UInt8])
    }

    struct Ended: Equatable {
        let slot: Int
        let reason: Reason
    }

    enum Decision: Equatable {
        case admitted(slot: Int, ended: [Ended])
        case refused(Reason)
    }

    private enum State {
        case free, closing, introducing
        case unidentified(source: Int)
        case identified(Identity)
    }

    private struct Slot {
        var state = State.free
        var hasRequested = false
        /// When the connection ends unless it sends a request or identifies itself; nil once it was
        /// told to end.
        var due: Instant?
    }

    struct Counts: Equatable {
        var introducing = 0
        var unidentified = 0
        var phones = 0
        var websites = 0
        var closing = 0

        var total: Int { introducing + unidentified + phones + websites + closing }
    }

    private(set) var limits: AdmissionLimits
    private(set) var counts = Counts()
    private var slots: [Slot] = []
    private var free: [Int] = []
    private var sources: SourceTable
    private var phones: [[UInt8]: [Int]] = [:]
    private var websites: [[UInt8]: Int] = [:]
    private var introducing = IndexList()
    private var introducingLinks = IndexLinks()
    /// Unidentified connections in the order in which they end: without a request, and with one.
    private var waiting = IndexList()
    private var served = IndexList()
    private var dueLinks = IndexLinks()

    init(_ limits: AdmissionLimits) {
        self.limits = limits
        sources = SourceTable(limits)
    }

    /// Uses other limits from now on.
    ///
    /// A connection that is open gets a shorter time, but no longer one. So the lists of due
    /// connections stay in order.
    mutating func replace(_ limits: AdmissionLimits, at now: Instant) {
        self.limits = limits
        sources.replace(limits)
        for slot in slots.indices {
            guard let due = slots[slot].due else { continue }
            slots[slot].due = min(due, now + (slots[slot].hasRequested ? limits.unidentifiedLife : limits.firstRequest))
        }
    }

    // MARK: Admission

    /// Admits an accepted connection.
    /// - Parameter source: nil if a balancer has not yet sent the address of the caller.
    mutating func admit(_ source: Source?, at now: Instant) -> Decision {
        guard counts.closing < limits.closing else { return .refused(.closing) }
        let slot = free.popLast() ?? slots.count
        if slot == slots.count { slots.append(Slot()) }
        guard let source else {
            let ended = counts.introducing >= limits.introductions ? [end(introducing.first, .introduction)] : []
            slots[slot].state = .introducing
            counts.introducing += 1
            introducingLinks.append(slot, to: &introducing)
            return .admitted(slot: slot, ended: ended)
        }
        return .admitted(slot: slot, ended: join(slot, source, now))
    }

    /// Counts the connection under the source that its PROXY header names.
    mutating func proxyHeaderRead(_ slot: Int, as source: Source, at now: Instant) -> Decision {
        guard case .introducing = slots[slot].state else { return .admitted(slot: slot, ended: []) }
        guard counts.closing < limits.closing else { return .refused(.closing) }
        leave(slot)
        return .admitted(slot: slot, ended: join(slot, source, now))
    }

    private mutating func join(_ slot: Int, _ source: Source, _ now: Instant) -> [Ended] {
        let index = sources.index(of: source, at: now)
        var ended: [Ended] = []
        if sources.count(index) >= limits.perSource {
            ended.append(end(sources.oldest(index), .source))
        } else if counts.unidentified >= limits.unidentified, let oldest = sources.oldestOfMostCrowded() {
            ended.append(end(oldest, .unidentified))
        }
        slots[slot] = Slot(state: .unidentified(source: index), due: now + limits.firstRequest)
        counts.unidentified += 1
        sources.add(slot, to: index)
        dueLinks.append(slot, to: &waiting)
        return ended
    }

    // MARK: Progress

    /// Takes a handshake from the budget of the connection's source. An identified connection needs
    /// none.
    mutating func takeHandshake(_ slot: Int, at now: Instant) -> HandshakeDecision {
        switch slots[slot].state {
        case .unidentified(let source): sources.takeHandshake(source, at: now)
        case .introducing, .identified: .begin
        // The table has told it to end, and its loop does not know that yet.
        case .free, .closing: .drop
        }
    }

    /// Records that a connection sent a whole request.
    mutating func requested(_ slot: Int, at now: Instant) {
        guard case .unidentified(let source) = slots[slot].state, !slots[slot].hasRequested else { return }
        forgetDue(slot)
        slots[slot].hasRequested = true
        slots[slot].due = now + limits.unidentifiedLife
        dueLinks.append(slot, to: &served)
        sources.renew(slot, of: source)
    }

    /// Counts the connection under its identity, once its certificate or proof is accepted. If the
    /// share of its kind is full, it stays unidentified.
    mutating func identified(_ slot: Int, as identity: Identity) -> (ended: [Ended], kept: Reason?) {
        guard case .unidentified = slots[slot].state else { return ([], nil) }
        var ended: [Ended] = []
        switch identity {
        case .phone(let key):
            let own = phones[key] ?? []
            if own.count >= limits.perPhone, counts.closing < limits.closing {
                ended.append(end(own[0], .phone))
            } else if own.count >= limits.perPhone || counts.phones >= limits.phones {
                return ([], .phones)
            }
            leave(slot)
            phones[key, default: []].append(slot)
            counts.phones += 1
        case .website(let key):
            guard counts.websites < limits.websites, websites[key] ?? 0 < limits.perWebsite else {
                return ([], .websites)
            }
            leave(slot)
            websites[key, default: 0] += 1
            counts.websites += 1
        }
        slots[slot].state = .identified(identity)
        return (ended, nil)
    }

    // MARK: The end

    /// Returns the connections whose time is over. Each is returned once, and stays counted until
    /// `release`.
    mutating func overdue(at now: Instant) -> [Ended] {
        var all: [Ended] = []
        while !waiting.isEmpty, let due = slots[waiting.first].due, due <= now {
            all.append(Ended(slot: waiting.first, reason: .request))
            forgetDue(waiting.first)
        }
        while !served.isEmpty, let due = slots[served.first].due, due <= now {
            all.append(Ended(slot: served.first, reason: .lifetime))
            forgetDue(served.first)
        }
        return all
    }

    /// Frees the slot of a closed connection. A new connection may get the slot from now on.
    mutating func release(_ slot: Int) {
        leave(slot)
        slots[slot] = Slot()
        free.append(slot)
    }

    private mutating func end(_ slot: Int, _ reason: Reason) -> Ended {
        leave(slot)
        slots[slot].state = .closing
        counts.closing += 1
        return Ended(slot: slot, reason: reason)
    }

    /// Removes the slot from all counts and lists.
    private mutating func leave(_ slot: Int) {
        switch slots[slot].state {
        case .free: break
        case .closing: counts.closing -= 1
        case .introducing:
            counts.introducing -= 1
            introducingLinks.remove(slot, from: &introducing)
        case .unidentified(let source):
            counts.unidentified -= 1
            sources.remove(slot, from: source)
            forgetDue(slot)
        case .identified(.phone(let key)):
            counts.phones -= 1
            phones[key]?.removeAll { $0 == slot }
            if phones[key]?.isEmpty == true { phones[key] = nil }
        case .identified(.website(let key)):
            counts.websites -= 1
            let left = (websites[key] ?? 1) - 1
            websites[key] = left == 0 ? nil : left
        }
        slots[slot].state = .free
    }

    private mutating func forgetDue(_ slot: Int) {
        guard slots[slot].due != nil else { return }
        slots[slot].due = nil
        if slots[slot].hasRequested {
            dueLinks.remove(slot, from: &served)
        } else {
            dueLinks.remove(slot, from: &waiting)
        }
    }

    func count(of source: Source) -> Int { sources.count(of: source) }
}
