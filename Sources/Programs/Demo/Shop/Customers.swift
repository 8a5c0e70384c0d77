import Crypto
import Synchronization

/// The website's customers, in a dictionary in place of a database. Their phones are in `Website`.
final class Customers: Sendable {
    /// The maximum length of a name, in Unicode scalars.
    static let longestName = 64

    struct Customer {
        /// The name as the customer entered it at sign-up. Swift treats two encodings of an
        /// accented letter as equal; the relay compares bytes.
        let name: String
        let password: PasswordHash
        /// The orders that the customer's phone has signed, the newest last.
        fileprivate(set) var orders: [Article] = []
    }

    private enum Entry {
        /// A sign-up under this name is in progress.
        case reserved
        case known(Customer)
    }

    private let entries = Mutex<[String: Entry]>([:])
    /// The most customers, which bounds the memory that sign-ups can use.
    private static let most = 10_000
    private static let mostOrders = 20

    /// Returns the customer; nil if there is none with that name.
    func find(_ name: String) -> Customer? {
        guard case .known(let customer) = entries.withLock({ $0[name] }) else { return nil }
        return customer
    }

    /// Reserves a name; false if it is taken or if there are too many customers. Of two
    /// simultaneous sign-ups, only the first gets the name.
    func reserve(_ name: String) -> Bool {
        entries.withLock { entries in
            guard entries[name] == nil, entries.count < Self.most else { return false }
            entries[name] = .reserved
            return true
        }
    }

    func release(_ name: String) { entries.withLock { $0[name] = nil } }

    func open(_ name: String, _ password: PasswordHash) {
        entries.withLock { $0[name] = .known(Customer(name: name, password: password)) }
    }

    func ordered(_ article: Article, by name: String) {
        entries.withLock { entries in
            guard case .known(var customer) = entries[name] else { return }
            customer.orders = (customer.orders + [article]).suffix(Self.mostOrders)
            entries[name] = .known(customer)
        }
    }
}
