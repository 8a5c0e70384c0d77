import Bytes
import Couriers
import Curl
import Log
import Synchronization
import World

/// Who calls websites now. Another may take over at any time: what is on its way ends as it began, and what stays the
/// same keeps its connections.
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

    /// Whom this replaces is let go of when what it has under way is done.
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
