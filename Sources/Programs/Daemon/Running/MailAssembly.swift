import Couriers
import Curl
import Log
import QR
import Templates
import World

extension LoadedFiles.Mail {
    public func courier(
        _ catalog: CurrentCatalog, time: any TimeSource, log: Log,
        draw: @escaping @Sendable (String) async -> [UInt8]? = { try? QRCode($0).png() }
    ) -> MailCourier {
        MailCourier(
            client: SMTPClient(server, time: time), from: from, catalog: catalog, time: time, log: log, draw: draw)
    }
}
