import HTTP
import JSON
import QR
import TwoefayClient
import World

/// Pages for the customer's phones: the list, renaming, removal, and binding another phone.
extension Shop {
    func phonesPage(_ visit: PageRequest, _ account: String) async throws(CallFault) -> Response {
        let phones = try await website.pinPhones(of: account).devices.filter { $0.state != .revoked }
        let pinned = website.pinned(of: account)
        let rows = phones.map { row(visit, $0, isPinned: pinned.contains($0.id)) }
        let list: HTML =
            phones.isEmpty
            ? #"<p>\#(visit(.noPhones))</p>"#
            : """
            <ul class="list">
            \(rows)
            </ul>
            """
        return page(
            visit, .phones,
            """
            <div class="card">
            \(list)
            </div>
            \(form(visit, "/phones/add", "", Button(phones.isEmpty ? .addPhone : .addAnotherPhone)))
            """)
    }

    private func row(_ visit: PageRequest, _ phone: Device, isPinned: Bool) -> HTML {
        let id: HTML = #"<input type="hidden" name="device" value="\#(phone.id)">"#
        let name = phone.name ?? visit(.namelessPhone)
        let state: (words: ShopText, style: String) =
            switch phone.state {
            case .waiting: (.phoneWaits, "warn")
            case .suspended: (.phoneSuspended, "warn")
            default: isPinned ? (.phoneActive, "good") : (.phoneUnproved, "bad")
            }
        let rename: HTML = """
            \(id)
            <label class="unseen" for="name-\(phone.id)">\(visit(.newNameOf(name)))</label>
            <input id="name-\(phone.id)" name="name" value="\(name)" maxlength="64" required>
            """
        return """
            <li>
            <div class="stack tight">
            <h2>\(name)</h2>
            <p><span class="badge \(state.style)">\(visit(state.words))</span></p>
            </div>
            <div class="row">
            \(form(visit, "/phones/rename", rename, Button(.rename, style: ""), style: "rename"))
            <a class="button danger" href="/phones/remove?device=\(phone.id)">\(visit(.remove(name)))</a>
            </div>
            </li>
            """
    }

    func renamePhone(_ visit: PageRequest, _ account: String) async throws(CallFault) -> Response {
        let (device, name) = (visit.field("device"), visit.field("name"))
        do throws(CallFault) {
            try await website.relay.rename(device, of: account, to: name)
            return go(visit, to: "/phones", .init(kind: .good, text: .renamed(name)))
        } catch {
            switch error.problem?.code {
            case .invalid, .notFound, .conflict: return go(visit, to: "/phones", .init(kind: .bad, text: .notRenamed))
            default: throw error
            }
        }
    }

    func removePhonePage(
        _ visit: PageRequest, _ account: String, _ device: String?, status: Int = 200
    ) async throws(CallFault) -> Response {
        let user = try await website.relay.user(account)
        guard let phone = user.devices.first(where: { $0.id == device && $0.state != .revoked }) else {
            return go(visit, to: "/phones")
        }
        let stays = RemainingFactors(user, without: phone.id)
        let name = phone.name ?? visit(.namelessPhone)
        let fields: HTML = """
            <input type="hidden" name="device" value="\(phone.id)">
            \(stays.hasPhone ? nil : Self.warned)
            """
        return page(
            visit, stays.hasPhone ? .removePhone : .removeLastPhone,
            """
            <div class="card">
            <p>\(visit(.removeSure(name))) \(visit(.lostPhone))</p>
            \(stays.hasPhone ? nil : warning(visit, .lastPhoneGoes, stays))
            \(form(visit, "/phones/remove", fields, Button(.remove(name), style: "danger primary")))
            <p><a class="button quiet" href="/phones">\(visit(.back))</a></p>
            </div>
            """, status: status)
    }

    func removePhone(_ visit: PageRequest, _ account: String) async throws(CallFault) -> Response {
        let device = visit.field("device")
        if !isWarned(visit) {
            // The form was made when the customer still had another phone.
            let stays = RemainingFactors(try await website.relay.user(account), without: device)
            guard stays.hasPhone else { return try await removePhonePage(visit, account, device, status: 409) }
        }
        do throws(CallFault) {
            try await website.relay.unbind(device, of: account)
        } catch  where error.problem?.code == .notFound {
            // Already removed.
        }
        website.unpin(device, of: account)
        return go(visit, to: "/phones", .init(kind: .good, text: .removed))
    }

    // MARK: Another phone

    /// Starts to bind a phone. The first phone is bound at once. For another one, the relay
    /// requires the customer's approval on a phone that is already bound.
    func addPhone(_ visit: PageRequest, _ account: String, approval: String? = nil) async throws(CallFault) -> Response
    {
        try await asking(visit, account, for: .phone) { () throws(CallFault) in
            let uri = try await website.activation(for: account, approval: approval)
            sessions.change(visit.id) { $0.activation = activation(uri, account) }
            return go(visit, to: "/phones/add")
        }
    }

    func activation(_ uri: String, _ account: String) -> Session.Activation {
        // The activation code is valid for ten minutes.
        .init(
            uri: uri, expiresAt: time.instant() + .seconds(600), phonesBefore: website.pinned(of: account).count)
    }

    func addPhonePage(_ visit: PageRequest, _ account: String) -> Response {
        guard let activation = alive(visit, account) else { return go(visit, to: "/phones") }
        return page(
            visit, .addPhone,
            """
            <div class="card">
            <ol>
            <li>\(visit(.openPhoneApp))</li>
            <li>\(visit(.scanThis))</li>
            <li>\(visit(.nameIt))</li>
            </ol>
            \(qr(visit, activation.uri, .qrOfActivation))
            \(textOf(visit, activation.uri))
            <p id="state" role="status" aria-live="polite">\(visit(.waitingForPhone))</p>
            <p><a class="button" href="/phones">\(visit(.phoneIsThere))</a></p>
            </div>
            """, awaits: "/phones/state")
    }

    /// Tells the page's script whether a phone was bound.
    func phonesState(_ visit: PageRequest, _ account: String) async -> Response {
        do throws(CallFault) {
            try await website.pinPhones(of: account)
        } catch {
            return responder.json(["over": false, "say": .string(visit(.stillTrying)), "pause": 3])
        }
        let isOver = alive(visit, account) == nil
        return responder.json([
            "over": .bool(isOver), "go": "/phones", "say": .string(visit(.waitingForPhone)), "pause": 2,
        ])
    }

    /// Returns the open activation; nil if a phone was bound or the activation has expired.
    private func alive(_ visit: PageRequest, _ account: String) -> Session.Activation? {
        guard let activation = visit.session.activation, activation.expiresAt > time.instant(),
            website.pinned(of: account).count <= activation.phonesBefore
        else { return nil }
        return activation
    }

    // MARK: QR codes

    /// Draws a QR code. The website draws it itself, because the relay's QR code does not contain
    /// `k`.
    func qr(_ visit: PageRequest, _ uri: String, _ label: ShopText) -> HTML {
        shown(uri)
        guard let code = try? QRCode(uri) else { return "" }
        return #"<div class="qr" role="img" aria-label="\#(visit(label))">\#(HTML(drawn: code.svg()))</div>"#
    }

    func textOf(_ visit: PageRequest, _ uri: String) -> HTML {
        """
        <details>
        <summary>\(visit(.cannotScan))</summary>
        <p class="code" id="uri">\(uri)</p>
        <button class="copy" type="button" data-copy="uri" data-done="\(visit(.copied))" hidden>\(visit(.copy))</button>
        </details>
        """
    }
}
