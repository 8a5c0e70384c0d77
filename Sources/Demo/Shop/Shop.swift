import EventLoop
import HTTP
import HTTP1
import TwoefayClient
import World

/// The sample website.
public final class Shop: Pages {
    private let house: PageHouse

    /// - Parameters:
    ///   - port: its own, which its cookies' names need.
    ///   - shown: told of every activation URI and otpauth URI that stands on the screen.
    init(
        _ access: WebsiteAccess, house: PageHouse, port: UInt16, loop: EventLoop, randomness: any Randomness,
        witness: @escaping Witness, shown: @escaping @Sendable (String) -> Void
    ) throws(CallFault) {
        self.house = house
    }

    static let files: [PageFile] = [.baseCSS, .shopCSS]

    public func answer(_ request: Request) async -> Response {
        house.file(for: request) ?? house.page("<!doctype html><title>The Shop</title>")
    }

    func close() async {}
}
