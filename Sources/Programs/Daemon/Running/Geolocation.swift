import Domain
import Geo
import Synchronization

/// The place of an IP address, from the database that was read last.
final class Geolocation: Sendable {
    private let finder: Mutex<PlaceFinder?>

    init(_ finder: PlaceFinder?) { self.finder = Mutex(finder) }

    func replace(_ finder: PlaceFinder?) { self.finder.withLock { $0 = finder } }

    func place(of ip: String) -> String? { finder.withLock { $0 }?.place(of: ip) }

    func distance(of ip: String, to place: CoarsePlace) -> Int? {
        finder.withLock { $0 }?.distance(of: ip, to: place)
    }
}
