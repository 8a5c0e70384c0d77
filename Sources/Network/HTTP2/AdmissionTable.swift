import World

/// Decides which connections may exist. It has no socket, no timer and no clock: every call brings
/// the time, and answers with the connections that have to end.
///
/// Invariants: no kind of caller ever has more connections than its share (`AdmissionLimits`); the shares add up to the
/// total; so a flood of unidentified connections takes no place of a website or of an identified phone.
///
/// A new connection is unidentified, because its certificate or proof comes later. It is never
/// refused for lack of places: an older unidentified connection is ended instead, of the same
/// source if that one is at its cap, else of the source that has most. So every new caller has a
/// while to identify itself, whatever the others do; how long, depends on how many newer
/// connections come meanwhile. A connection's first request counts as another beginning.
struct AdmissionTable {
    /// Why a connection was refused, put off or ended, or kept among the unidentified ones.
    enum Reason: String, CaseIterable, Sendable {
        /// Refused: more connections are being closed than the loops get round to.
        case closing
        /// Put off: its handshake waits until the budget of its source has room.
        case handshakes
        /// Ended for a newer one of the same source.
        case source
        /// Ended for another source: no place for unidentified connections is left.
        case unidentified
        /// Ended for a newer one: no place is left for balancers' connections without a PROXY header.
        case introduction
        /// Ended for a newer one of the same phone.
        case phone
        /// Kept among the unidentified ones: no place is left for phones, or for websites.
        case phones, websites
        /// Ended: no request came in time.
        case request
        /// Ended: it lived long enough without identifying itself.
        case lifetime
    }

    enum Identity: Hashable, Sendable {
        /// A caller, by the SHA-256 of its key.
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
        /// When it ends unless it makes a request or identifies itself; nil when it was told to end.
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

    let limits: AdmissionLimits
    private(set) var counts = Counts()
    private var slots: [Slot] = []
    private var free: [Int] = []
    private var sources: SourceTable
    private var phones: [[UInt8]: [Int]] = [:]
    private var websites: [[UInt8]: Int] = [:]
    private var introducing = IndexList()
    private var introducingLinks = IndexLinks()
    /// Unidentified connections by the time when they end: without a request, and with one.
    private var waiting = IndexList()
    private var served = IndexList()
    private var dueLinks = IndexLinks()

    init(_ limits: AdmissionLimits) {
        self.limits = limits
        sources = SourceTable(limits)
    }

    // MARK: Coming

    /// A connection was accepted. `source` is nil if a balancer still has to say whose it is.
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

    /// The balancer said whose connection it is.
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

    // MARK: Getting on

    /// Takes a handshake from the budget of the connection's source. An identified connection needs none.
    mutating func takeHandshake(_ slot: Int, at now: Instant) -> HandshakeDecision {
        switch slots[slot].state {
        case .unidentified(let source): sources.takeHandshake(source, at: now)
        case .introducing, .identified: .begin
        // It has been told to end, and only its loop does not know yet.
        case .free, .closing: .drop
        }
    }

    /// A whole request has come.
    mutating func requested(_ slot: Int, at now: Instant) {
        guard case .unidentified(let source) = slots[slot].state, !slots[slot].hasRequested else { return }
        forgetDue(slot)
        slots[slot].hasRequested = true
        slots[slot].due = now + limits.unidentifiedLife
        dueLinks.append(slot, to: &served)
        sources.renew(slot, of: source)
    }

    /// The caller has a certificate of ours, or an accepted proof. Over the share of its kind, it stays where it is.
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

    // MARK: Going

    /// The connections whose time is over. They are named once, and counted until `release`.
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

    /// The connection is closed. Its slot may be given to another one from now on.
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

    /// Takes the slot out of everything that counts it.
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
