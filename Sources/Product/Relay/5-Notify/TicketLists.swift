import Domain

/// The tickets of the held requests: a doubly linked list for each event, oldest first, and for
/// each ticket a list of the ticket's links. All links are in one array, so a waiting request needs
/// no allocation for them.
///
/// A list that is being fired is detached: its event has no list any more, so a new ticket starts
/// another list. A ticket in a detached list can still leave it in one step.
///
/// Tests: `RelayTests/HeldRequestsTests.swift`.
struct TicketLists {
    typealias List = Int32
    static let none: Int32 = -1

    private struct Link {
        var ticket: HeldRequests.Ticket?
        var list: List
        var previous: Int32
        var next: Int32
        /// The next link of the same ticket. In a free link, it is the next free link.
        var sibling: Int32
    }

    private struct Head {
        /// The event of the list; nil if the list is detached or free.
        var event: HeldRequests.Event?
        var first: Int32
        /// The last link; in a free head, the next free head.
        var last: Int32
    }

    private var lists: [HeldRequests.Event: List] = [:]
    private var heads: [Head] = []
    private var links: [Link] = []
    private var freeHead = Self.none
    private var freeLink = Self.none
    private(set) var count = 0
    private(set) var steps = 0

    func isAwaited(_ event: HeldRequests.Event) -> Bool { lists[event] != nil }

    /// Adds a ticket to the lists of its events. If an event occurs twice, the ticket has two links
    /// there.
    mutating func add(_ ticket: HeldRequests.Ticket, _ events: [HeldRequests.Event]) {
        count += 1
        for event in events { append(ticket, to: list(of: event)) }
    }

    mutating func remove(_ ticket: HeldRequests.Ticket) {
        guard ticket.firstLink != Self.none else { return }
        count -= 1
        var next = ticket.firstLink
        ticket.firstLink = Self.none
        while next != Self.none {
            let link = next
            next = links[Int(link)].sibling
            unlink(link)
        }
    }

    /// Removes and returns the tickets that wait for `event` but not for `known`. They are removed
    /// from all their lists.
    mutating func take(_ event: HeldRequests.Event, besides known: HeldRequests.Event? = nil) -> [HeldRequests.Ticket] {
        guard let list = lists[event] else { return [] }
        let other = known.flatMap { lists[$0] }
        var taken: [HeldRequests.Ticket] = []
        var next = heads[Int(list)].first
        while next != Self.none {
            steps += 1
            let link = links[Int(next)]
            next = link.next
            guard let ticket = link.ticket else { continue }
            if let other, isIn(other, ticket) { continue }
            taken.append(ticket)
        }
        for ticket in taken { remove(ticket) }
        return taken
    }

    /// Detaches the list of an event, so that no further ticket joins it; returns nil if no ticket
    /// waits.
    mutating func detach(_ event: HeldRequests.Event) -> List? {
        guard let list = lists.removeValue(forKey: event) else { return nil }
        heads[Int(list)].event = nil
        // A link without a ticket keeps the list until it was fired completely, even if all its
        // tickets leave.
        append(nil, to: list)
        return list
    }

    /// Removes and returns the oldest tickets of a detached list, and whether there are more. The
    /// list is released when it is empty.
    mutating func takeFirst(_ most: Int, of list: List) -> (tickets: [HeldRequests.Ticket], hasMore: Bool) {
        var taken: [HeldRequests.Ticket] = []
        while taken.count < most {
            steps += 1
            let first = heads[Int(list)].first
            guard let ticket = links[Int(first)].ticket else {
                unlink(first)
                return (taken, false)
            }
            remove(ticket)
            taken.append(ticket)
        }
        return (taken, true)
    }

    private mutating func isIn(_ list: List, _ ticket: HeldRequests.Ticket) -> Bool {
        var next = ticket.firstLink
        while next != Self.none {
            steps += 1
            if links[Int(next)].list == list { return true }
            next = links[Int(next)].sibling
        }
        return false
    }

    private mutating func list(of event: HeldRequests.Event) -> List {
        if let list = lists[event] { return list }
        let head = Head(event: event, first: Self.none, last: Self.none)
        let list: List
        if freeHead != Self.none {
            list = freeHead
            freeHead = heads[Int(list)].last
            heads[Int(list)] = head
        } else {
            list = List(heads.count)
            heads.append(head)
        }
        lists[event] = list
        return list
    }

    private mutating func append(_ ticket: HeldRequests.Ticket?, to list: List) {
        steps += 1
        let last = heads[Int(list)].last
        let link = Link(
            ticket: ticket, list: list, previous: last, next: Self.none, sibling: ticket?.firstLink ?? Self.none)
        let place: Int32
        if freeLink != Self.none {
            place = freeLink
            freeLink = links[Int(place)].sibling
            links[Int(place)] = link
        } else {
            place = Int32(links.count)
            links.append(link)
        }
        if last == Self.none { heads[Int(list)].first = place } else { links[Int(last)].next = place }
        heads[Int(list)].last = place
        ticket?.firstLink = place
    }

    private mutating func unlink(_ place: Int32) {
        steps += 1
        let link = links[Int(place)]
        if link.previous == Self.none {
            heads[Int(link.list)].first = link.next
        } else {
            links[Int(link.previous)].next = link.next
        }
        if link.next == Self.none {
            heads[Int(link.list)].last = link.previous
        } else {
            links[Int(link.next)].previous = link.previous
        }
        links[Int(place)].ticket = nil
        links[Int(place)].sibling = freeLink
        freeLink = place
        if heads[Int(link.list)].first == Self.none { release(link.list) }
    }

    private mutating func release(_ list: List) {
        if let event = heads[Int(list)].event { lists[event] = nil }
        heads[Int(list)].event = nil
        heads[Int(list)].last = freeHead
        freeHead = list
    }
}
