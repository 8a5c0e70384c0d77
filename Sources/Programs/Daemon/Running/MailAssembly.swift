import Couriers
import Curl
import Log
import Templates
import World

extension LoadedFiles.Mail {
    public func courier(_ catalog: CurrentCatalog, time: any TimeSource, log: Log) -> MailCourier {
        MailCourier(client: SMTPClient(server, time: time), from: from, catalog: catalog, time: time, log: log)
    }
}
