import Crypto
import Synchronization

/// The website's customers, in a dictionary in place of its database. What they are asked with, and by which phones, is
/// `Website`'s.
final class Customers: Sendable {
    /// Characters of a name.
    static let longestName = 64

    struct Customer {
        /// As it was signed up with. Swift takes two spellings of an accent for the same text; the relay goes by bytes.
        let name: String
        let password: PasswordHash
        /// What their phone has signed for; the newest last.
        fileprivate(set) var orders: [Article] = []
    }

    private enum Entry {
        /// Somebody is signing up under that name.
        case reserved
        case known(Customer)
    }

    private let entries = Mutex<[String: Entry]>([:])
    /// It is a throw-away: whoever signs up without end gets an end.
    private static let most = 10_000
    private static let mostOrders = 20

    /// Nil where nobody has that name.
    func find(_ name: String) -> Customer? {
        guard case .known(let customer) = entries.withLock({ $0[name] }) else { return nil }
        return customer
    }

    /// False where somebody has it: of two who sign up at once one gets it.
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
