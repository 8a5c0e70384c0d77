import Couriers
import Curl
import Log
import Templates
import World

extension LoadedFiles.Mail {
    public func courier(_ words: CurrentCatalog, time: any TimeSource, log: Log) -> MailCourier {
        MailCourier(client: SMTPClient(server, time: time), from: from, words: words, time: time, log: log)
    }
}
