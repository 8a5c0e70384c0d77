import Bytes
import Couriers
import Curl
import Log
import Synchronization
import World

/// The courier for webhooks that is in use now.
///
/// A reload replaces it only if its settings or files have changed, so an unchanged courier keeps
/// its connections. Webhooks in flight end with the courier that began them. Tested in
/// `ActiveWebhookCourierTests.swift`.
final class ActiveWebhookCourier: Sendable {
    private struct State {
        var material: LoadedFiles.WebhookFiles
        var courier: HTTPWebhookCourier
    }

    private let state: Mutex<State>
    private let time: any TimeSource
    private let log: Log

    init(_ material: LoadedFiles.WebhookFiles, time: any TimeSource, log: Log) {
        self.time = time
        self.log = log
        state = Mutex(State(material: material, courier: material.courier(time: time, log: log)))
    }

    var courier: HTTPWebhookCourier { state.withLock { $0.courier } }

    /// Puts a new courier into use if the files differ. The old one is released when its webhooks
    /// in flight have ended.
    func replace(_ material: LoadedFiles.WebhookFiles) {
        state.withLock { state in
            guard !material.isSame(as: state.material) else { return }
            state = State(material: material, courier: material.courier(time: time, log: log))
        }
    }

    func close() { courier.close() }
}

extension LoadedFiles.WebhookFiles {
    public func courier(time: any TimeSource, log: Log) -> HTTPWebhookCourier {
        var options = HTTPWebhookCourier.Options()
        options.client.addresses = AddressGuard(allowing: allowed)
        options.client.extraTrust = authority
        options.client.clientCertificate = certificate
        return HTTPWebhookCourier(time: time, log: log, options: options)
    }

    fileprivate func isSame(as other: LoadedFiles.WebhookFiles) -> Bool {
        guard allowed == other.allowed, authority == other.authority else { return false }
        switch (certificate, other.certificate) {
        case (nil, nil): return true
        case (let own?, let other?):
            return own.chain == other.chain && Secret.matches(own.key.reveal(), other.key.reveal())
        default: return false
        }
    }
}
