/// A store in memory, for tests and trials. It forgets all pinned keys when the process ends.
public actor MemoryStore: Store {
    /// A name as bytes: `==` of `String` also treats different bytes as equal.
    private typealias Name = [UInt8]

    private struct User {
        var token: [UInt8]?
        var secrets: [[UInt8]: Int64] = [:]
        /// The phones by their ids; nil for an unpinned one.
        var phones: [Name: PinnedPhone?] = [:]

        mutating func unpin(_ device: Name) {
            switch phones[device] {
            case .some(nil): return  // unpinned before
            case .some: phones[device] = .some(nil)
            case nil: break
            }
            secrets = [:]
        }
    }

    private var users: [Name: User] = [:]
    private var requests: [Name: Int64] = [:]
    private var events: [Name: Int64] = [:]

    /// Creates an empty store.
    public init() {}

    public func addUser(_ username: String, token: String) {
        users[Name(username.utf8), default: User()].token = Array(token.utf8)
    }

    public func token(of username: String) -> String? {
        users[Name(username.utf8)]?.token.map { String(decoding: $0, as: UTF8.self) }
    }

    public func addSecret(_ k: [UInt8], of username: String, at now: Int64) {
        users[Name(username.utf8), default: User()].secrets[k] = now
    }

    public func secrets(of username: String, at now: Int64) -> [[UInt8]] {
        (users[Name(username.utf8)]?.secrets ?? [:]).filter { now - $0.value < StoreLife.day }.map(\.key)
    }

    public func pin(_ phone: PinnedPhone, of username: String, with k: [UInt8]) -> Bool {
        let (name, device) = (Name(username.utf8), Name(phone.device.utf8))
        guard var user = users[name], user.secrets[k] != nil, user.phones[device] == nil else { return false }
        user.secrets = [:]
        user.phones[device] = phone
        users[name] = user
        return true
    }

    public func pins(of username: String) -> [PinnedPhone] {
        users[Name(username.utf8)]?.phones.values.compactMap(\.self) ?? []
    }

    public func wasPinned(_ username: String) -> Bool { !(users[Name(username.utf8)]?.phones.isEmpty ?? true) }

    public func unpin(_ device: String, of username: String) {
        users[Name(username.utf8)]?.unpin(Name(device.utf8))
    }

    public func unpin(_ device: String, ofToken token: String) {
        let token = Array(token.utf8)
        for (name, user) in users where user.token == token { users[name]?.unpin(Name(device.utf8)) }
    }

    public func forget(_ username: String) { users[Name(username.utf8)] = nil }

    public func open(_ request: String, at now: Int64) {
        requests = requests.filter { now - $0.value <= StoreLife.day }
        requests[Name(request.utf8)] = now
    }

    public func spend(_ request: String) -> Bool { requests.removeValue(forKey: Name(request.utf8)) != nil }

    public func hasSeen(_ event: String) -> Bool { events[Name(event.utf8)] != nil }

    public func see(_ event: String, at now: Int64) {
        events = events.filter { now - $0.value <= StoreLife.event }
        events[Name(event.utf8)] = now
    }
}
