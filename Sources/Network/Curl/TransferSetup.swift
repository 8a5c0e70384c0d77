import CCurl
import HTTP

extension WebClient {
    /// Sets all options of a transfer. Returns false if libcurl refuses one.
    func prepare(_ easy: UnsafeMutableRawPointer, _ running: RunningTransfer) -> Bool {
        let transfer = running.transfer
        let context = Unmanaged.passUnretained(running).toOpaque()
        let schemes = options.plainHTTP == .never ? "https" : "https,http"
        let numbers: [(CURLoption, Int)] = [
            (CURLOPT_FOLLOWLOCATION, 0),
            (CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS)),
            // Waits until it is known whether a connection can carry several transfers. Without TLS
            // none can, and libcurl would know that only after the first response.
            (CURLOPT_PIPEWAIT, transfer.url.secure ? 1 : 0),
            (CURLOPT_FRESH_CONNECT, options.keepsConnections ? 0 : 1),
            (CURLOPT_FORBID_REUSE, options.keepsConnections ? 0 : 1),
            (CURLOPT_NOBODY, transfer.method == "HEAD" ? 1 : 0),
        ]
        let texts: [(CURLoption, String?)] = [
            (CURLOPT_URL, transfer.url.text), (CURLOPT_PROTOCOLS_STR, schemes),
        ]
        var codes = CurlLibrary.prepare(
            easy, extraTrust: options.extraTrust, connectTimeout: options.connectTimeout)
        if let trusted = options.onlyTrust {
            codes.append(ccurl_set_text(easy, CURLOPT_CAPATH, nil))
            codes.append(ccurl_set_bytes(easy, CURLOPT_CAINFO_BLOB, trusted, trusted.count))
        }
        if let shown = options.clientCertificate { codes += CurlLibrary.show(shown, on: easy) }
        codes += numbers.map { ccurl_set_number(easy, $0, $1) } + texts.map { ccurl_set_text(easy, $0, $1) }
        if !transfer.body.isEmpty {
            codes.append(ccurl_set_count(easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(transfer.body.count)))
            codes.append(ccurl_set_pointer(easy, CURLOPT_COPYPOSTFIELDS, transfer.body))
        } else if ["POST", "PUT", "PATCH"].contains(transfer.method) {
            codes.append(ccurl_set_count(easy, CURLOPT_POSTFIELDSIZE_LARGE, 0))
            codes.append(ccurl_set_text(easy, CURLOPT_COPYPOSTFIELDS, ""))
        }
        if transfer.method != "HEAD" { codes.append(ccurl_set_text(easy, CURLOPT_CUSTOMREQUEST, transfer.method)) }
        running.list = list(of: transfer)
        codes += [
            ccurl_set_pointer(easy, CURLOPT_HTTPHEADER, running.list),
            ccurl_set_opener(easy, CurlCallbacks.open), ccurl_set_pointer(easy, CURLOPT_OPENSOCKETDATA, context),
            ccurl_set_readiness(easy, CurlCallbacks.isAboutToSend),
            ccurl_set_pointer(easy, CURLOPT_PREREQDATA, context),
            ccurl_set_receiver(easy, CURLOPT_HEADERFUNCTION, CurlCallbacks.head),
            ccurl_set_pointer(easy, CURLOPT_HEADERDATA, context),
            ccurl_set_receiver(easy, CURLOPT_WRITEFUNCTION, CurlCallbacks.body),
            ccurl_set_pointer(easy, CURLOPT_WRITEDATA, context),
        ]
        return codes.allSatisfy { $0 == CURLE_OK }
    }

    /// The header lines. Fields that libcurl would add by itself are removed, except those that
    /// HTTP requires.
    private func list(of transfer: Transfer) -> UnsafeMutablePointer<curl_slist>? {
        var lines = transfer.fields.all.map { $0.value.isEmpty ? "\($0.name);" : "\($0.name): \($0.value)" }
        for name in ["expect", "content-type"] where transfer.fields[name] == nil { lines.append("\(name):") }
        return lines.reduce(nil) { list, line in curl_slist_append(list, line) ?? list }
    }
}
