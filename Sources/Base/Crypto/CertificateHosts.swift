import COpenSSL

extension Certificate {
    /// The host names and addresses among the subject's alternative names, in order.
    public var hosts: [CertificateRequest.Name] {
        guard let certificate = try? parsed("reading a certificate"),
            let found = X509_get_ext_d2i(certificate.pointer, NID_subject_alt_name, nil, nil)
        else { return [] }
        let names = OpaquePointer(found)
        defer {
            GENERAL_NAMES_free(names)
            ERR_clear_error()
        }
        return (0..<OPENSSL_sk_num(names)).compactMap { index in
            guard let name = OPENSSL_sk_value(names, index) else { return nil }
            var type: Int32 = 0
            guard let value = GENERAL_NAME_get0_value(name.assumingMemoryBound(to: GENERAL_NAME.self), &type) else {
                return nil
            }
            let bytes = Self.bytes(of: UnsafePointer(value.assumingMemoryBound(to: ASN1_STRING.self)))
            switch type {
            case GEN_DNS: return .dns(String(decoding: bytes, as: UTF8.self))
            case GEN_IPADD: return .ip(bytes)
            default: return nil
            }
        }
    }
}
