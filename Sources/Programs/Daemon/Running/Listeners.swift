import EventLoop

/// The sockets of a relay, one of each kind for each loop: those of systemd, or its own.
///
/// They are opened before everything else, because a relay that cannot listen must not touch the
/// store. Clients that connect wait until the servers start.
struct Listeners {
    let relay: [ListeningSocket]
    /// Those for browsers; empty if the settings name no address for them.
    let browsers: [ListeningSocket]

    static func open(_ settings: Settings, _ inherited: InheritedSockets) throws(Failure) -> Listeners {
        let relay = try open(settings.listen, "listen", inherited.relay, count: settings.loopCount)
        guard let place = settings.phone.listen else {
            inherited.browsers?.close()
            return Listeners(relay: relay, browsers: [])
        }
        do throws(Failure) {
            let browsers = try open(place, "phone.listen", inherited.browsers, count: settings.loopCount)
            return Listeners(relay: relay, browsers: browsers)
        } catch {
            for socket in relay { socket.close() }
            throw error
        }
    }

    func close() { for socket in relay + browsers { socket.close() } }

    /// - Parameter setting: the key that names the address, for messages.
    private static func open(
        _ place: HostPort, _ setting: String, _ inherited: ListeningSocket?, count: Int
    ) throws(Failure) -> [ListeningSocket] {
        if let inherited {
            do throws(SystemFailure) {
                return try inherited.shared(by: count)
            } catch {
                throw Failure(.unavailable, "cannot serve: \(error)", next: "Raise the limit of open files.")
            }
        }
        guard let address = SocketAddress(host: place.host, port: place.port) else {
            throw Failure(
                .failed, "\(setting): \(place.host) is not an address of this machine",
                next: "Give an IP address, such as 0.0.0.0 or [::] for all.")
        }
        do throws(SystemFailure) {
            return try ListeningSocket.open(address, count: count)
        } catch {
            throw Failure(
                .unavailable, "cannot listen on \(place.settingsText): \(error)",
                next: "Choose another address or port ('\(setting)' in the settings), or free this one.")
        }
    }
}
